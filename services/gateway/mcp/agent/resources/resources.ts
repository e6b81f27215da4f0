import { isUtf8 } from "node:buffer";
import { durationMs } from "@bufbuild/protobuf/wkt";
import {
  type Resource as McpResource,
  type ReadResourceResult,
  ResourceNotFoundError,
  type ResourceTemplateType,
  type Server,
} from "@modelcontextprotocol/server";
import type { Resource, ResourceContents, ResourceTemplate } from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import { filled } from "#runtime/schema/json-object.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { describedFrom } from "../described.ts";
import { type AgentSources, refuseUnlisted, Search, type SourceOfSession } from "../sources.ts";
import { referenceFromUri, type StoredResults } from "../stored-results.ts";
import { fitsTemplate, MAX_STEPS } from "./uri-templates.ts";

/**
 * Resources of all the agent's servers, under their own addresses: results and prompts name them so. An address is asked of the one
 * server that lists it, or has a template for it, and of no other, to which it may be nothing but a secret.
 */
export function serveResources(server: Server, sources: AgentSources, results: StoredResults): void {
  server.setRequestHandler("resources/list", async () => {
    const found = await sources.resources();
    return { resources: byUri(found.flatMap(({ items }) => items.map(resourceFrom))), ...sources.ttlOf(found) };
  });
  server.setRequestHandler("resources/templates/list", async () => {
    const found = await sources.templates();
    return { resourceTemplates: found.flatMap(({ items }) => items.map(templateFrom)), ...sources.ttlOf(found) };
  });
  server.setRequestHandler("resources/read", async ({ params: { uri } }): Promise<ReadResourceResult> => {
    const reference = referenceFromUri(uri);
    if (reference !== undefined) {
      const head = { uri, ...filled({ mimeType: reference.mimeType }) };
      return { contents: [{ ...head, ...wholeFrom(await results.readBytes(reference)) }] };
    }
    const source = await sourceOf(uri, sources, refuseUnlisted);
    const { contents, ttl } = await sources.content.readResource({ source, uri }, sources.options);
    const kept = ttl && sources.ttlOf([{ ttlMs: durationMs(ttl) }], Number.POSITIVE_INFINITY);
    return { contents: contents.map(contentsFrom), ...kept };
  });
}

/** Up to 2025-11-25; later, a request that listens names what it listens to. */
export function serveSubscriptions(server: Server, sources: AgentSources): void {
  const { content, options } = sources;
  server.setRequestHandler("resources/subscribe", async ({ params: { uri } }) => {
    const source = await sourceOf(uri, sources, refuseUnlisted);
    await content.subscribeResource({ source, uri }, options);
    return {};
  });
  server.setRequestHandler("resources/unsubscribe", async ({ params: { uri } }) => {
    await content.unsubscribeResource({ sessionId: await sources.sessionId(), uri }, options);
    return {};
  });
}

/** Of these resources, those that a source has. */
export async function watchedFrom(uris: readonly string[], sources: AgentSources) {
  const found = await Promise.all(
    uris.map(async (uri) => {
      const owner = await sourceOf(uri, sources, () => undefined);
      return owner === undefined ? [] : [{ source: owner.source, uri }];
    }),
  );
  return found.flat();
}

/** A server that lists the address comes first: most have no need of templates. */
const LISTS_FIRST_MS = 200;

async function sourceOf<T>(
  uri: string,
  sources: AgentSources,
  unlisted: (lists: Parameters<typeof refuseUnlisted>[0], absent: Error) => T,
): Promise<SourceOfSession | T> {
  const isIt = (one: Resource) => one.uri === uri;
  const budget = { steps: MAX_STEPS };
  const fits = ({ uriTemplate }: ResourceTemplate) => fitsTemplate(uriTemplate, uri, budget);
  using search = new Search();
  const listing = sources.resources({ search, fits: isIt });
  await comesWithin(LISTS_FIRST_MS, listing);
  const templates = search.isHit ? [] : sources.templates({ search, fits: () => false });
  const [lists, patterns] = await Promise.all([listing, templates]);
  const owner = lists.find(({ items }) => items.some(isIt)) ?? patterns.find(({ items }) => items.some(fits));
  return owner?.source ?? unlisted([...lists, ...patterns], new ResourceNotFoundError(uri));
}

/** The first server, by name, has an address that two of them list. */
function byUri(resources: McpResource[]): McpResource[] {
  return [...new Map(resources.toReversed().map((one) => [one.uri, one])).values()].toReversed();
}

function resourceFrom({ uri, name, ...described }: Resource): McpResource {
  return { uri, name: name || uri, ...describedFrom(described) };
}

function templateFrom({ uriTemplate, name, ...described }: ResourceTemplate): ResourceTemplateType {
  return { uriTemplate, name: name || uriTemplate, ...describedFrom(described) };
}

/** Results are JSON, except for what their blocks hold. */
function wholeFrom(bytes: Uint8Array) {
  const whole = Buffer.from(bytes);
  return isUtf8(whole) ? { text: whole.toString("utf8") } : { blob: whole.toString("base64") };
}

function contentsFrom({ uri, mimeType, content }: ResourceContents): ReadResourceResult["contents"][number] {
  const head = { uri, ...(mimeType !== "" && { mimeType }) };
  return content.case === "blob"
    ? { ...head, blob: Buffer.from(content.value).toString("base64") }
    : { ...head, text: content.value ?? "" };
}
