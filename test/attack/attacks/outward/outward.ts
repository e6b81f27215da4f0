// Servers that tools are configured for, and what they answer: redirects, secrets, floods, and words for a terminal.

import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCatalogService } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { until } from "#runtime/time/until.ts";
import { openLargeServer } from "../../../../services/mcp-bridge/testing/servers/large-server.ts";
import {
  openForeignHost,
  openRedirectingServer,
} from "../../../../services/mcp-bridge/testing/servers/redirecting-server.ts";
import { insideHosts } from "../../../../services/tool-router/testing/peers/inside-hosts.ts";
import { openWebServer } from "../../../../services/tool-router/testing/peers/web-server.ts";
import { startCommand } from "../../../harness/commands/command.ts";
import { gatewayAt } from "../../../system/access/world.ts";
import { type Attack, type Ground, tryAll } from "../../attack.ts";
import { callTool } from "../../suite/call-tool.ts";

const secretKey = `\${secret:KEY}`;

/** An operator configures the server, and mallory opens a session with an agent that uses it. */
async function openAgentOf({ url, keys }: Ground, name: string, mcpUrl: string) {
  const config = { url: mcpUrl, headers: { "x-api-key": secretKey } };
  const model = { provider: "scripted", model: "keeper.json" };
  const agent = { name, model, sources: [{ name: "far", provider: "mcp", config }], tools: { use: ["@far/*"] } };
  await gatewayAt(url, keys.olga).client(AgentService).applyAgent({ agent });
  const mallory = gatewayAt(url, keys.mallory);
  const { session } = await mallory.client(SessionService).createSession({ agent: name });
  const call = (tool: string) =>
    callTool(mallory, { sessionId: session!.id, name: `@far/${tool}`, argumentsJson: "{}" }).catch(messageFromUnknown);
  return call;
}

const isThere = (said: string) => !/no tool|not available|unavailable|not found|is not in/i.test(said);

export const outward: readonly Attack[] = [
  {
    name: "a server over HTTP that sends requests on, with the secret in them",
    requirement: "SEC-7",
    async play(ground) {
      await using foreign = await openForeignHost();
      await using sending = await openRedirectingServer(() => foreign.url);
      await using streaming = await openRedirectingServer((method) => (method === "GET" ? foreign.url : undefined));
      const all = await openAgentOf(ground, "sent-on", sending.url);
      const stream = await openAgentOf(ground, "streamed-on", streaming.url);
      await all("fail");
      const said = await until(
        async () => {
          const text = await stream("fail");
          return isThere(text) && text;
        },
        { timeoutMs: 20_000, what: "the server to be there" },
      );
      const shown = ground.secrets
        .filter((secret) => said.includes(secret))
        .map(() => `an error shows a secret: ${said}`);
      return { tries: 3, reached: [...foreign.keys.map((key) => `another host was sent ${key}`), ...shown] };
    },
  },
  {
    name: "a server over HTTP whose answers have no end",
    requirement: "SEC-5",
    isLong: true,
    async play(ground) {
      await using server = await openLargeServer(700);
      const call = await openAgentOf(ground, "large", server.url);
      const isCut = (said: string) => /answer is larger than \d+ bytes/.test(said);
      await until(async () => isCut(await call("json")), { timeoutMs: 20_000, what: "the server to be there" });
      const forms = ["gzip", "events", "line"];
      return await tryAll(
        forms,
        async (form) => {
          const said = await call(form);
          return isCut(said) ? undefined : `${form} was not cut off: ${said.length} characters: ${said.slice(0, 200)}`;
        },
        1,
      );
    },
  },
  {
    name: "a web server that sends a tool inside, by each way to write a host",
    requirement: "SEC-7",
    async play(ground, { isShort }) {
      await using inside = await openWebServer((_, response) => response.end("inside"));
      await using outside = await openWebServer(
        (_request, response, body) => response.writeHead(307, { location: JSON.parse(body).to }).end(),
        "127.0.0.2",
        inside.port,
      );
      const { url, keys } = ground;
      const execution = { url: `http://127.0.0.2:${outside.port}/` };
      const tool = { name: "fetch", executionType: ExecutionType.GATEWAY, visible: false, execution };
      await gatewayAt(url, keys.olga).client(ToolCatalogService).applyCatalogTool({ tool });
      const by = gatewayAt(url, keys.mallory);
      const call = (to: string) =>
        callTool(by, { sessionId: "mallorys", name: "fetch", argumentsJson: JSON.stringify({ to }) }).catch(
          messageFromUnknown,
        );
      const isKept = async () => /not a public one/.test(await call(`http://127.0.0.1:${inside.port}/`));
      await until(isKept, { timeoutMs: 20_000, what: "the tool to lead to the server" });
      const outcome = await tryAll(isShort ? insideHosts.slice(0, 10) : insideHosts, async ([what, host]) => {
        const said = await call(`http://${host}:${inside.port}/secret`);
        return said.includes("inside") && !said.includes("not a public one") ? `${what}: ${said}` : undefined;
      });
      const connections = inside.connections > 0 ? [`${inside.connections} connections were made inside`] : [];
      return { ...outcome, reached: [...outcome.reached, ...connections] };
    },
  },
  {
    name: "words that do something on a terminal, from a person and a tool",
    requirement: "SEC-7",
    async play({ url, keys }, { isShort }) {
      const odd = "hi\x1b[1A\x1b[2Kcall approved\x1b]52;c;aGk=\x07\x9b31m\u202eapproved\u2066 \x08\x7f\rend-of-it";
      const mallory = gatewayAt(url, keys.mallory);
      const spaceId = "odd";
      const spaces = mallory.client(SpaceService);
      const orElse = (first: Promise<unknown>, second: () => Promise<unknown>) => first.catch(second); // an odd name may be refused
      await orElse(spaces.createSpace({ spaceId, title: odd }), () => spaces.createSpace({ spaceId }));
      const author = { case: "personName", value: odd } as const;
      const content = textContent(odd);
      await orElse(spaces.enterSpace({ spaceId, member: author }), () => spaces.enterSpace({ spaceId }));
      await orElse(spaces.sendMessage({ spaceId, content, author }), () => spaces.sendMessage({ spaceId, content }));
      await callTool(mallory, { sessionId: "mallorys", name: "note", argumentsJson: JSON.stringify({ odd }) });
      const spoken = [["spaces"], ["spaces", "show", spaceId], ["spaces", "watch", spaceId]];
      const words = isShort ? spoken : [...spoken, ["audit"], ["sessions"], ["calls"]];
      let shownBy = 0;
      const outcome = await tryAll(
        words,
        async (command) => {
          await using shown = startCommand([...command, "--url", url], { env: { TOOLBUS_API_KEY: keys.olga } });
          const hasShown = () => shown.written.stdout.includes("end-of-it");
          await Promise.race([shown.ended, until(hasShown, { timeoutMs: 15_000 }).catch(() => {})]); // not everything shows it
          const { stdout, stderr } = shown.written;
          if (hasShown()) shownBy += 1;
          // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
          const found = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/.exec(
            stdout + stderr,
          );
          return found === null ? undefined : `toolbus ${command.join(" ")} shows ${JSON.stringify(found[0])}`;
        },
        3,
      );
      return shownBy > 0 ? outcome : { ...outcome, reached: [...outcome.reached, "no command has shown the words"] };
    },
  },
];
