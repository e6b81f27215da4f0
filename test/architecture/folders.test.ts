// The folders of a room stand in an order: each may import those that stand before it, and none that stands after it.
// So a room is read from its first folder on, and a change of one touches only those below it.

import { describe, expect, it } from "vitest";
import { sourceFilesBelow } from "./source-files.ts";

/** Folders whose own folders are ordered. `testing` is imported by tests alone, and stands nowhere. */
const orders: Readonly<Record<string, readonly string[]>> = {
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
  "services/orchestrator/runs": ["watch", "answer", "create", "sub-agents", "self-wake"],
  "services/tool-router": ["tools", "catalogue", "sessions", "calls", "subscriptions", "routes", "service"],
  "services/tool-router/sessions": ["offers", "contexts", "switch"],
  "services/tool-router/calls": ["answers", "records", "run-limits", "watchers", "due-work", "requests", "execute"],
};

describe.each(Object.entries(orders))("the folders of %s", (base, order) => {
  const files = sourceFilesBelow(base).filter((file) => !file.isTest);
  const placeOf = (path: string) => {
    const [folder = "", ...rest] = path.startsWith(`${base}/`) ? path.slice(base.length + 1).split("/") : [];
    return rest.length === 0 ? -1 : order.indexOf(folder);
  };

  it("are all in the order", () => {
    const folders = files.map(({ path }) => path.slice(base.length + 1).split("/")).filter(({ length }) => length > 1);
    expect([...new Set(folders.map(([folder]) => folder))].sort()).toEqual([...order].sort());
  });

  it("import none that stands after them", () => {
    const upward = files.flatMap(({ path, imports }) => {
      const place = placeOf(path);
      return place < 0
        ? []
        : imports.filter((imported) => placeOf(imported) > place).map((imported) => `${path} → ${imported}`);
    });
    expect(files.filter(({ path }) => placeOf(path) >= 0).length).toBeGreaterThan(order.length);
    expect(upward).toEqual([]);
  });

  it("import no file that joins them", () => {
    const joining = /^(main|service|routes)\.ts$/;
    const breaches = files.flatMap(({ path, imports }) => {
      if (placeOf(path) < 0) return [];
      const joined = imports.filter((imported) => joining.test(imported.slice(base.length + 1)));
      return joined.filter((imported) => imported.startsWith(`${base}/`)).map((imported) => `${path} → ${imported}`);
    });
    expect(breaches).toEqual([]);
  });
});
