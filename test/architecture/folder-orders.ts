import type { SourceFile } from "./source-files.ts";

/** Folders whose own folders are ordered. `testing` is imported by tests alone, and stands nowhere. */
export const folderOrders: Readonly<Record<string, readonly string[]>> = {
  cli: [
    "faults",
    "printing",
    "project",
    "answering",
    "completing",
    "requests",
    "watching",
    "replay",
    "suite",
    "commands",
    "program",
  ],
  "runtime/bus": [
    "link",
    "declarations",
    "credentials",
    "nats-server",
    "nats-patches",
    "streams",
    "quota",
    "buckets",
    "work-queue",
    "ownership",
  ],
  "runtime/rpc/nats": ["call", "frame", "channel", "client", "server"],
  "services/caller-relay": ["declarations", "streams", "requests", "delivery", "subscriptions", "routes"],
  console: ["build", "parts", "suite", "inbox", "runs", "tools", "agents", "spaces", "audit", "overview", "app"],
  "services/gateway": ["access", "plain", "mcp", "responses", "console"],
  "services/gateway/mcp": ["http", "search", "calls", "agent", "tasks", "revisions", "own", "suite", "callers"],
  "services/mcp-bridge": [
    "tools",
    "transport",
    "servers",
    "link",
    "auth",
    "connection",
    "provider",
    "subscriptions",
    "routes",
  ],
  "services/orchestrator": ["log", "model", "loop", "sessions", "runs", "subscriptions", "routes"],
  "services/orchestrator/model": ["attempt", "providers", "prompt", "retry"],
  "services/orchestrator/loop": [
    "errors",
    "tools",
    "inbox",
    "limits",
    "streaming",
    "requests",
    "prompt",
    "turn",
    "calls",
  ],
  "services/orchestrator/sessions": ["wakes", "history", "retention", "worker"],
  "services/orchestrator/runs": ["watch", "list", "answer", "create", "sub-agents", "self-wake"],
  "services/spaces": ["owners", "inbox", "space", "messages", "memory", "built-ins", "subscriptions", "routes"],
  "services/tool-router": ["tools", "catalogue", "sessions", "calls", "subscriptions", "routes", "service"],
  "services/tool-router/sessions": ["offers", "contexts", "switch"],
  "services/tool-router/calls": ["answers", "records", "run-limits", "watchers", "due-work", "requests", "execute"],
  "services/worker-pool": [
    "calls",
    "logs",
    "files",
    "worker",
    "pool",
    "built-ins",
    "hosted",
    "provider",
    "subscriptions",
  ],
};

/** The place of the folder of `base` that holds a file; -1 for files of `base` itself, and for those of folders without a place. */
export function placeInOrder(base: string, path: string): number {
  const [folder = "", ...rest] = path.startsWith(`${base}/`) ? path.slice(base.length + 1).split("/") : [];
  return rest.length === 0 ? -1 : (folderOrders[base] ?? []).indexOf(folder);
}

/** Imports of a folder that stands after the importing one, as `importer → imported`. */
export function upwardImports(base: string, files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, imports }) => {
    const place = placeInOrder(base, path);
    const upward = place < 0 ? [] : imports.filter((imported) => placeInOrder(base, imported) > place);
    return upward.map((imported) => `${path} → ${imported}`);
  });
}
