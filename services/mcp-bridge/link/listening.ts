import type { Client } from "@modelcontextprotocol/client";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { repeatUntilAborted } from "#runtime/time/retry/retry.ts";
import { rootsOf } from "../servers/roots.ts";
import { logFromNotification } from "../tools/log.ts";
import type { LinkOptions } from "./link-options.ts";

/** What the server tells and asks by itself, until the signal aborts. */
export function listenToServer(client: Client, options: LinkOptions, signal: AbortSignal): void {
  const { server, context } = options;
  client.setNotificationHandler("notifications/tools/list_changed", () => options.onToolsChanged());
  client.setNotificationHandler("notifications/resources/updated", ({ params }) =>
    options.onResourceUpdated(params.uri),
  );
  client.setNotificationHandler("notifications/message", ({ params }) => options.onLog(logFromNotification(params)));
  client.setRequestHandler("elicitation/create", ({ params }, { mcpReq }) => options.onElicit(params, mcpReq.signal));
  if (server.sampling) {
    client.setRequestHandler("sampling/createMessage", ({ params }, { mcpReq }) =>
      options.onSample(params, mcpReq.signal),
    );
  }
  if (server.roots.length > 0) client.setRequestHandler("roots/list", () => rootsOf(server));
  const isModern = client.getProtocolEra() === "modern";
  if (isModern && client.getServerCapabilities()?.tools?.listChanged) void listenToTools(client, options, signal);
  if (!isModern && client.getServerCapabilities()?.logging) {
    client
      .setLoggingLevel("info")
      .catch((error) => context.logger.debug(`${server.name} sets no level: ${error.message}`));
  }
}

/** Changes are told on a stream of its own since 2026-07-28. One that ends is opened again, and what was missed is read. */
async function listenToTools(
  client: Client,
  { onToolsChanged, context, server }: LinkOptions,
  signal: AbortSignal,
): Promise<void> {
  let isFirst = true;
  const hear = async (works: () => void) => {
    const isReopened = !isFirst;
    isFirst = false;
    const subscription = await client.listen({ toolsListChanged: true }, { signal });
    if (isReopened) onToolsChanged();
    const openedAt = performance.now();
    await subscription.closed;
    if (performance.now() - openedAt > 30_000) works();
  };
  const onError = (error: unknown) =>
    context.logger.debug(`${server.name} tells no changes: ${messageFromUnknown(error)}`);
  await repeatUntilAborted(hear, { initialMs: 500, maxMs: 60_000, signal, onError });
}
