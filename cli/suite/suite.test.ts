import { expect, it } from "vitest";
import { isOfDirectory } from "./suite.ts";

it.each([
  ["a file in its place", { code: "ENOTDIR", path: "/p/.toolbus" }, true],
  ["a file of it on a full disk", { code: "ENOSPC", path: "/p/.toolbus/nats/store" }, true],
  ["a full disk, whichever", { code: "ENOSPC" }, false],
  ["a cache on a full disk", { code: "ENOSPC", path: "/home/u/.cache/toolbus/nats-server" }, false],
  ["a folder beside it", { code: "EACCES", path: "/p/.toolbus-keys/admin" }, false],
  ["too many open files", { code: "EMFILE", path: "/p/.toolbus/keys/local" }, false],
])("%s: whether another directory helps", (_, told, helps) => {
  const error = Object.assign(new Error(told.code), { syscall: "open" }, told);
  expect(isOfDirectory("/p/.toolbus", error)).toBe(helps);
});
