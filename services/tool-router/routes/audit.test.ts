import { type ConnectRouter, createContextValues, type HandlerContext } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { createSessionOwners } from "#runtime/rpc/access/session-owners.ts";
import { callerKey, callerNamed } from "#runtime/rpc/identity.ts";
import { routeAudit } from "./audit.ts";

type List = (request: object, context: Pick<HandlerContext, "values" | "signal">) => Promise<{ events: object[] }>;

test("SEC-5 a principal has one page of the audit trail read at a time, and keeps nobody else from theirs", async () => {
  const waiting: (() => void)[] = [];
  const audit = {
    async *backwards() {
      await new Promise<void>((resolve) => waiting.push(resolve));
    },
    follow: async function* () {},
    sequenceSince: async () => 0,
  };
  const handlers: { listAuditEvents?: List } = {};
  const router = { service: (_: unknown, of: object) => Object.assign(handlers, of) };
  const { signal } = new AbortController();
  const ownership = createSessionOwners(async () => undefined);
  routeAudit(router as unknown as ConnectRouter, {
    audit,
    ownership,
    sessions: { ownedBy: async () => () => false },
    stopping: signal,
  });
  const list = (principal: string) => {
    const values = createContextValues().set(callerKey, callerNamed(principal));
    return handlers.listAuditEvents!({ pageSize: 10, pageToken: "" }, { values, signal });
  };
  const lists = Promise.all(["mallory", "mallory", "mallory", "alice"].map(list));
  await expect.poll(() => waiting.length).toBe(2);
  for (let ended = 0; ended < 4; ended += 1) {
    await expect.poll(() => waiting.length).toBeGreaterThan(ended);
    expect(waiting.length).toBeLessThanOrEqual(ended + 2);
    waiting[ended]!();
  }
  expect((await lists).map(({ events }) => events)).toEqual([[], [], [], []]);
});
