import { expect, test } from "vitest";
import { callerNamed, SELF } from "../identity.ts";
import { createSessionOwners } from "./session-owners.ts";

test("SEC-2 a session that another principal opens between two readings was refused at the first", async () => {
  const owners = new Map<string, string>();
  const ownership = createSessionOwners(async (id) => {
    const principal = owners.get(id);
    return principal === undefined ? undefined : { principal };
  });
  const [alice, bob] = [callerNamed("alice"), callerNamed("bob")];
  for (const caller of [bob, SELF])
    await expect(ownership.requireStanding("s", caller)).rejects.toMatchObject({ reason: "SESSION_NOT_FOUND" });
  owners.set("s", "alice");
  await ownership.requireStanding("s", alice);
  await ownership.requireStanding("s", SELF);
  await expect(ownership.requireStanding("s", bob)).rejects.toMatchObject({ reason: "PRINCIPAL_NOT_OWNER" });
});
