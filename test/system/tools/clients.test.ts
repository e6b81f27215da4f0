import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { until } from "#runtime/time/until.ts";
import { projectRoot } from "../../architecture/source-files.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const execute = promisify(execFile);
const stack = new AsyncDisposableStack();
let suite: TestSuite;
beforeAll(async () => {
  suite = stack.use(await openTestSuite());
  const router = suite.connection.client(ToolService);
  const areAllThere = async () =>
    (await router.listTools({ scope: { case: "agent", value: "demo" } })).sources.every((source) => source.available);
  await until(areAllThere, { timeoutMs: 30_000, what: "the sources of the agent to be up" });
});
afterAll(() => stack.disposeAsync());

/** buf's own client, which learns the contract from the gateway's reflection. */
async function bufCurl(method: string, data: object): Promise<object[]> {
  const buf = join(projectRoot, "node_modules", ".bin", "buf");
  const args = ["curl", "--http2-prior-knowledge", "--data", JSON.stringify(data), `${suite.url}/${method}`];
  args.push("--header", `authorization: Bearer ${suite.apiKey}`);
  const { stdout } = await execute(buf, args);
  return stdout
    .split(/^(?=\{)/m)
    .filter((text) => text.trim() !== "")
    .map((text) => JSON.parse(text) as object);
}

describe("BUS-3 clients that are not ours", () => {
  it("buf curl lists tools, calls one, and watches a run, by reflection", async () => {
    const [listed] = await bufCurl("toolbus.tool.v1.ToolService/ListTools", { agent: "demo" });
    expect(JSON.stringify(listed)).toContain("everything__echo");
    const [created] = await bufCurl("toolbus.session.v1.SessionService/CreateSession", { agent: "demo" });
    const { session } = created as { session: { id: string } };
    const call = { sessionId: session.id, name: "everything__echo", argumentsJson: '{"message":"hi"}' };
    const events = await bufCurl("toolbus.tool.v1.ToolService/CallTool", call);
    expect(events.at(-1)).toMatchObject({ result: { outputJson: '"Echo: hi"' } });

    const input = [{ message: { role: "ROLE_USER", content: [{ text: "hello buf" }] } }];
    const [accepted] = await bufCurl("toolbus.run.v1.RunService/CreateRun", { agent: "demo", input });
    const { run } = accepted as { run: { id: string } };
    const updates = await bufCurl("toolbus.run.v1.RunService/WatchRun", { runId: run.id, fromSequence: "0" });
    expect(updates[0]).toMatchObject({ event: { accepted: {} } });
    expect(updates.at(-1)).toMatchObject({ event: { ended: { state: "RUN_STATE_COMPLETED" } } });
  });

  it("a Python gRPC client lists tools, calls one, and watches a run, by the generated stubs", async () => {
    const env = { ...process.env, TOOLBUS_URL: suite.url, TOOLBUS_API_KEY: suite.apiKey };
    const client = join(projectRoot, "examples", "clients", "python", "client.py");
    const { stdout } = await execute(await findUv(), ["run", client, "hello snake"], { env });
    expect(stdout).toContain("everything__echo");
    expect(stdout).toContain("qr answered: hello snake");
    expect(stdout).toMatch(/RUN_STATE_COMPLETED.*hello snake/);
  });
});
