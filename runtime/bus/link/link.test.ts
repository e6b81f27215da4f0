import { JetStreamApiError } from "@nats-io/jetstream";
import { afterEach, expect, test, vi } from "vitest";
import { type Link, retryOnBus } from "./link.ts";

afterEach(() => vi.restoreAllMocks());

test("BUS-6 what is given up is told as unavailable, also when the clock of the retries runs ahead", async () => {
  const storage = { patienceMs: Number.POSITIVE_INFINITY };
  const link = { isUp: true, down: new AbortController().signal, storage } as unknown as Link;
  const refused = new JetStreamApiError({ code: 503, err_code: 10008, description: "temporarily unavailable" });
  const startMs = Date.now();
  vi.spyOn(Date, "now")
    .mockReturnValueOnce(startMs)
    .mockReturnValue(startMs + 1_000);
  const given = retryOnBus(link, () => Promise.reject(refused), { what: "reading it", timeoutMs: 1_000 });
  await expect(given).rejects.toMatchObject({ code: "unavailable", message: expect.stringContaining("reading it") });
});
