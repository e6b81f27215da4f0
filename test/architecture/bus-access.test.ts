// What a service stores and whom it asks must stand in services/access.ts, or nats-server refuses it. A store that stands there
// for nobody would be noticed only when a suite starts.

import { expect, it } from "vitest";
import { BUCKETS, OBJECT_STORES, STREAMS } from "#runtime/bus/declarations/declarations.ts";
import { listServices } from "../../cli/suite/service-names.ts";
import { ACCESS, type Access } from "../../services/access.ts";

const table: Readonly<Record<string, Access>> = ACCESS;

it("SEC-1 every service has its access", () => {
  expect(Object.keys(table).sort()).toEqual(listServices());
});

it("SEC-1 every store that is declared is owned by a service", () => {
  const owned = Object.values(table).flatMap(({ stores }) =>
    Object.entries(stores).flatMap(([store, access]) => (access === "owns" ? [store] : [])),
  );
  const declared = [STREAMS, BUCKETS, OBJECT_STORES].flatMap((stores) => Object.keys(stores));
  expect(declared.length).toBeGreaterThan(15);
  expect(declared.filter((store) => !owned.includes(store) && store !== "toolbus_owners")).toEqual([]); // two services share it
});
