import { randomBytes } from "node:crypto";
import { toJson } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { BucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import { createMemoryBucket } from "#runtime/bus/testing/memory-bucket.ts";
import { serverFrom } from "../../testing/connection.ts";
import { Logins, type LoginsParts } from "../logins.ts";
import { digest, recordKey } from "../record.ts";
import { LoginRecords } from "../records.ts";
import { createSealing } from "../sealing.ts";

const server = serverFrom({ name: "notes", url: "https://notes.example/mcp" });
const origin = { authorizationServer: "https://login.example", resource: "https://notes.example/mcp" };

test("a login is completed also where its record changes at the same moment", async () => {
  const view = new BucketView<Uint8Array>();
  const bucket = createMemoryBucket<Uint8Array>({ onWrite: (one) => view.apply({ kind: "set", ...one }) });
  let others = 0;
  const read: typeof bucket.read = async (key) => {
    const found = await bucket.read(key);
    if (others++ < 3) await records.update(key, (record) => record && { ...record, renewing: `${others}` });
    return found;
  };
  const records = new LoginRecords({ bucket: { ...bucket, read }, view, sealing: createSealing([randomBytes(32)]) });
  const key = recordKey("principal:ada", server);
  const state = `${key}.state`;
  const pending = {
    origin,
    principal: "ada",
    stateHash: digest(state),
    codeVerifier: "v",
    expiresAtMs: Date.now() + 60_000,
  };
  await records.update(key, () => ({ server: toJson(McpServerSchema, server), pending }));
  const logins = new Logins({ records, secrets: new Map(), allow: [] } as unknown as LoginsParts);
  const answer = { state, code: "", issuer: "", error: "access_denied" };
  const ada = { principal: "ada" } as never;
  await expect(logins.complete(answer, ada)).rejects.toThrow("it was refused there: access_denied");
  await expect(logins.complete(answer, ada)).rejects.toThrow("no such login");
});
