// Lists an agent's tools, calls one, and watches a run: Connect or gRPC-Web from a page, with the generated stubs.

import { enumToJson } from "@bufbuild/protobuf";
import { ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { ErrorDetailSchema, ReasonSchema } from "#gen/toolbus/error/v1/error_pb.ts";
import { Role, RunStateSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";

const tools = elementOf("tools");
const answer = elementOf("answer");
const events = elementOf("events");
const outcome = elementOf("outcome");

document.querySelector("form")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const fields = new FormData(event.target as HTMLFormElement);
  const field = (name: string) => String(fields.get(name));
  for (const element of [tools, answer, events, outcome]) element.replaceChildren();
  show(openTransport(field), { agent: field("agent"), text: field("text") }).catch((error: unknown) => {
    outcome.textContent = textFromError(ConnectError.from(error));
  });
});

async function show(transport: Transport, { agent, text }: { agent: string; text: string }): Promise<void> {
  const toolService = createClient(ToolService, transport);
  const listed = await toolService.listTools({ scope: { case: "agent", value: agent } });
  for (const { modelName } of listed.tools) append(tools, modelName);

  const { session } = await createClient(SessionService, transport).createSession({ agent });
  const call = { sessionId: session?.id ?? "", name: "qr", argumentsJson: JSON.stringify({ text }) };
  for await (const { event } of toolService.callTool(call)) {
    if (event.case === "result") answer.textContent = JSON.parse(event.value.outputJson).text;
  }

  const runs = createClient(RunService, transport);
  const input = [
    {
      item: {
        case: "message" as const,
        value: { role: Role.USER, content: [{ part: { case: "text" as const, value: text } }] },
      },
    },
  ];
  const { run } = await runs.createRun({ agent, input });
  for await (const { update } of runs.watchRun({ runId: run?.id ?? "", fromSequence: 0n })) {
    if (update.case !== "event") continue;
    const { event } = update.value;
    append(events, event.case ?? "of a kind that this page does not know");
    if (event.case === "ended")
      outcome.textContent = `${enumToJson(RunStateSchema, event.value.state)}: ${event.value.outputText}`;
  }
}

function openTransport(field: (name: string) => string): Transport {
  const authorize: Interceptor = (next) => (request) => {
    if (field("key") !== "") request.header.set("authorization", `Bearer ${field("key")}`);
    return next(request);
  };
  const options = { baseUrl: field("url"), interceptors: [authorize] };
  return field("protocol") === "connect" ? createConnectTransport(options) : createGrpcWebTransport(options);
}

/** What happened in words, and the contract's reason for it, if the gateway was heard at all. */
function textFromError(error: ConnectError): string {
  const [detail] = error.findDetails(ErrorDetailSchema);
  return detail === undefined ? error.message : `${error.message} (${enumToJson(ReasonSchema, detail.reason)})`;
}

function append(list: HTMLElement, text: string): void {
  const item = document.createElement("li");
  item.textContent = text;
  list.append(item);
}

function elementOf(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no element "${id}"`);
  return element;
}
