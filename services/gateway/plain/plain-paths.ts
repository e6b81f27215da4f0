import { connectError } from "#runtime/failure/connect.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { HttpRequest, HttpResponse, PathTaker } from "#runtime/rpc/http/messages.ts";
import { answerThrown } from "#runtime/rpc/http/refusal.ts";
import type { Telemetry } from "#runtime/telemetry/telemetry.ts";
import type { Enter } from "../access/admission.ts";
import type { Door } from "./door.ts";
import { observedDoors } from "./observed-doors.ts";

export interface PlainPathsOptions {
  enter: Enter;
  metricsText: () => Promise<string>;
  logins: PathTaker;
  console: PathTaker;
  /** What other people's clients speak, and external tools. */
  doors: readonly Door[];
  telemetry: Pick<Telemetry, "inSpan" | "meter">;
  /** Why nothing can be stored. */
  storageFault: () => string | undefined;
}

/** What is no RPC: `/metrics` for Prometheus, `/livez` and `/healthz` for probes, calls of external tools, logins at MCP servers, the doors of MCP clients and of OpenAI's, and the console. */
export function createPlainPaths({
  enter,
  metricsText,
  logins,
  console,
  doors,
  storageFault,
  telemetry,
}: PlainPathsOptions): PathTaker {
  const observed = observedDoors(doors, telemetry);
  return (request, response, body) => {
    const path = (request.url ?? "/").split("?", 1)[0];
    if (path === "/livez") answer(response, "text/plain", "ok\n");
    else if (path === "/healthz") health(response);
    else if (path !== "/metrics") return [console, logins, observed].some((takes) => takes(request, response, body));
    else {
      metrics(request, response).then(
        (text) => answer(response, "text/plain; version=0.0.4", text),
        (thrown: unknown) => answerThrown(request, response, thrown),
      );
    }
    return true;
  };

  function health(response: HttpResponse): void {
    const fault = storageFault();
    if (fault !== undefined) response.statusCode = 503;
    answer(response, "text/plain", `${fault ?? "ok"}\n`);
  }

  async function metrics(request: HttpRequest, response: HttpResponse): Promise<string> {
    await enter(request, response, "calls");
    try {
      return await metricsText();
    } catch (cause) {
      const text = `the metrics cannot be read: ${messageFromUnknown(cause)}`;
      throw connectError("internal", text, { reason: "INTERNAL", cause });
    }
  }
}

function answer(response: HttpResponse, type: string, body: string): void {
  response.setHeader("content-type", type);
  response.end(body);
}
