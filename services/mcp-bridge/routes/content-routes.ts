import { type Duration, durationFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type {
  ListPromptsRequest,
  McpContentService,
  SessionSource,
} from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import { callerOf } from "#runtime/rpc/identity.ts";
import { pageOf } from "#runtime/rpc/paging/page.ts";
import type { Ending } from "#runtime/time/ending.ts";
import type { Asker } from "../provider/provider.ts";
import type { AskContent } from "../provider/session-content.ts";
import type { SessionResources, Subscriptions } from "../provider/session-resources.ts";
import { blobOf, completionFrom, namedFrom, promptFrom, recordsIn, textIn, ttlMsIn } from "../tools/content.ts";
import type { ServerMethod } from "../tools/server-method.ts";

export interface ContentRoutes {
  readonly resources: SessionResources;
  readonly subscriptions: Pick<Subscriptions, "remove">;
  readonly askContent: AskContent;
  /** Refuses a session of somebody else, and one that does not exist. */
  readonly requireSession: (sessionId: string, context: ReturnType<typeof callerOf>) => Promise<void>;
  readonly askerOf: (context: HandlerContext) => Asker;
  /** Ends watches when the service stops. */
  readonly lasting: (context: HandlerContext) => Ending;
}

type ListRequest = Pick<ListPromptsRequest, "source" | "pageSize" | "pageToken">;

export function contentRoutes(routes: ContentRoutes): ServiceImpl<typeof McpContentService> {
  const { askContent, resources, subscriptions, requireSession, askerOf, lasting } = routes;
  async function ask(asked: SessionSource | undefined, method: ServerMethod, params: object, context: HandlerContext) {
    const { sessionId = "", source = "" } = asked ?? {};
    await requireSession(sessionId, callerOf(context));
    return askContent({ sessionId, source, method, params: { ...params } }, context.signal);
  }

  async function list(request: ListRequest, method: ServerMethod, key: string, context: HandlerContext) {
    const { sessionId = "", source = "" } = request.source ?? {};
    const answer = await ask(request.source, method, {}, context);
    const elements = recordsIn(answer.items);
    const placeOf = (record: Record<string, unknown>) => textIn(record, key);
    return { ...pageOf([method, sessionId, source], { elements, placeOf }, request), ...ttlOf(answer) };
  }

  return {
    async listResources(request, context) {
      const { items, ...page } = await list(request, "resources/list", "uri", context);
      return { resources: items.map((one) => ({ ...namedFrom(one), uri: textIn(one, "uri") })), ...page };
    },
    async listResourceTemplates(request, context) {
      const { items, ...page } = await list(request, "resources/templates/list", "uriTemplate", context);
      const resourceTemplates = items.map((one) => ({ ...namedFrom(one), uriTemplate: textIn(one, "uriTemplate") }));
      return { resourceTemplates, ...page };
    },
    async readResource({ source, uri }, context) {
      const answer = await ask(source, "resources/read", { uri }, context);
      return { contents: recordsIn(answer.contents).map(blobOf), ...ttlOf(answer) };
    },
    async listPrompts(request, context) {
      const { items, ...page } = await list(request, "prompts/list", "name", context);
      return { prompts: items.map(promptFrom), ...page };
    },
    async getPrompt({ source, name, arguments: given }, context) {
      const answer = await ask(source, "prompts/get", { name, arguments: given }, context);
      const messages = recordsIn(answer.messages).map((message) => ({
        role: textIn(message, "role"),
        contentJson: JSON.stringify(message.content ?? null),
      }));
      return { description: textIn(answer, "description"), messages };
    },
    async complete({ source, reference, argument: name, value, arguments: known }, context) {
      const ref =
        reference.case === "prompt"
          ? { type: "ref/prompt", name: reference.value }
          : { type: "ref/resource", uri: reference.value };
      const params = { ref, argument: { name, value }, context: { arguments: known } };
      return completionFrom((await ask(source, "completion/complete", params, context)).completion);
    },
    async subscribeResource({ source: asked, uri }, context) {
      const { sessionId = "", source = "" } = asked ?? {};
      await requireSession(sessionId, callerOf(context));
      await resources.subscribe({ sessionId, source, uri }, context.signal);
      return {};
    },
    async unsubscribeResource({ sessionId, uri }, context) {
      await requireSession(sessionId, callerOf(context));
      await subscriptions.remove(sessionId, uri, context.signal);
      return {};
    },
    async *watchResources({ sessionId, resources: named }, context) {
      await requireSession(sessionId, callerOf(context));
      using ending = lasting(context);
      const asker = { ...askerOf(context), signal: ending.signal };
      const [only] = named;
      if (!asker.isPeer || only === undefined) yield* resources.watch(sessionId, named, ending.signal);
      // whoever has forwarded it looks for the owner again
      else for await (const event of resources.watchOne({ ...only, sessionId }, asker)) yield { [event]: [only] };
    },
  };
}

function ttlOf(answer: Record<string, unknown>): { ttl?: Duration } {
  const ttlMs = ttlMsIn(answer);
  return ttlMs === undefined ? {} : { ttl: durationFromMs(ttlMs) };
}
