// The folders of a service stand in an order: each may import those that stand before it, and none that stands after it.
// So a service is read from its first folder on, and a change of one touches only those below it.

import { describe, expect, it } from "vitest";
import { folderOrders, placeInOrder, upwardImports } from "./folder-orders.ts";
import { sourceFilesBelow } from "./source-files.ts";

describe.each(Object.entries(folderOrders))("the folders of %s", (base, order) => {
  const files = sourceFilesBelow(base).filter((file) => !file.isTest);
  const placeOf = (path: string) => placeInOrder(base, path);

  it("are all in the order", () => {
    const folders = files.map(({ path }) => path.slice(base.length + 1).split("/")).filter(({ length }) => length > 1);
    expect([...new Set(folders.map(([folder]) => folder))].sort()).toEqual([...order].sort());
  });

  it("import none that stands after them", () => {
    expect(files.filter(({ path }) => placeOf(path) >= 0).length).toBeGreaterThan(order.length);
    expect(upwardImports(base, files)).toEqual([]);
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
