import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  amountLeft,
  costOfTokens,
  lowerAmount,
  plusAmount,
  shareOfAmount,
  type Total,
  textOfAmount,
  toldAmount,
} from "./money.ts";
import { usd } from "./testing/dollars.ts";

const eur = (micros: bigint) => ({ currencyCode: "EUR", micros });
const int64Max = 2n ** 63n - 1n;

describe("what requests to models cost", () => {
  test("LOOP-12 is rounded up once a request: the sum is never below the exact cost, and above it by less than a micro a request", () => {
    const count = fc.bigInt({ min: 0n, max: 10_000_000n });
    const microsPerMillion = fc.bigInt({ min: 0n, max: 100_000_000_000n });
    const request = fc.record({ read: count, written: count });
    fc.assert(
      fc.property(fc.array(request), microsPerMillion, microsPerMillion, (requests, input, output) => {
        const tokensOf = ({ read, written }: { read: bigint; written: bigint }) => [
          { count: read, microsPerMillion: input },
          { count: written, microsPerMillion: output },
        ];
        const sum = requests.reduce((total, one) => total + costOfTokens(tokensOf(one)), 0n);
        // in millionths of a micro, so that the exact cost is an integer
        const exact = requests.reduce((total, { read, written }) => total + read * input + written * output, 0n);
        expect(sum * 1_000_000n).toBeGreaterThanOrEqual(exact);
        const above = sum * 1_000_000n - exact;
        expect(requests.length === 0 ? above === 0n : above < BigInt(requests.length) * 1_000_000n).toBe(true);
      }),
    );
  });

  test("LOOP-12 is what a message holds at most, however many tokens at whatever price", () => {
    expect(costOfTokens([{ count: 2n ** 64n - 1n, microsPerMillion: int64Max }])).toBe(int64Max);
  });
});

describe("amounts of money", () => {
  test("LOOP-12 are known of one currency, and have no sum in several", () => {
    expect(plusAmount(undefined, undefined)).toBeUndefined();
    expect(plusAmount(undefined, usd(0))).toEqual(usd(0));
    expect(plusAmount(usd(1), undefined)).toEqual(usd(1));
    expect(plusAmount(usd(1), usd(0.5))).toEqual(usd(1.5));
    expect(plusAmount(usd(1), eur(1n))).toBe("mixed");
    expect(plusAmount("mixed", usd(1))).toBe("mixed");
    expect(plusAmount(usd(1), eur(0n)), "what is free is free in every currency").toEqual(usd(1));
    expect(plusAmount(usd(0), eur(1n))).toEqual(eur(1n));
    expect(plusAmount(usd(1), { currencyCode: "USD", micros: -1n }), "nothing is earned").toEqual(usd(1));
    expect(plusAmount(eur(int64Max), eur(1n))).toEqual(eur(int64Max));
  });

  test.each<[string, Total, number]>([
    ["nothing", undefined, 2],
    ["a part", usd(0.5), 1.5],
    ["more", usd(3), 0],
    ["nothing of another currency", eur(0n), 2],
    ["a millionth of another currency", eur(1n), 0],
    ["two currencies", "mixed", 0],
  ])("LOOP-12 are held against a limit: %s", (_, spent, left) => {
    expect(amountLeft(usd(2), spent)).toEqual(usd(left));
  });

  test("LOOP-12 of two limits the lower one holds, and nothing is left between two currencies", () => {
    expect(lowerAmount(undefined, undefined)).toBeUndefined();
    expect(lowerAmount(usd(1), undefined)).toEqual(usd(1));
    expect(lowerAmount(usd(3), usd(2))).toEqual(usd(2));
    expect(lowerAmount(usd(3), eur(2n))).toEqual(usd(0));
  });

  test("LOOP-12 LOOP-17 that have no sum are told to a budget above as all that they might have cost", () => {
    expect(toldAmount(usd(1), usd(2))).toEqual(usd(1));
    expect(toldAmount("mixed", usd(2))).toEqual(usd(2));
    expect(toldAmount("mixed", undefined)).toBeUndefined();
    expect(toldAmount(undefined, usd(2))).toBeUndefined();
  });

  test("LOOP-12 are shared so that all shares together are no more", () => {
    const micros = fc.bigInt({ min: 0n, max: int64Max });
    fc.assert(
      fc.property(micros, fc.integer({ min: 1, max: 100 }), (whole, sharers) => {
        const share = shareOfAmount(eur(whole), sharers).micros;
        expect(share * BigInt(sharers)).toBeLessThanOrEqual(whole);
        expect((share + 1n) * BigInt(sharers)).toBeGreaterThan(whole);
      }),
    );
  });

  test.each([
    ["0", "0.00 EUR"],
    ["1", "0.000001 EUR"],
    ["12300", "0.0123 EUR"],
    ["500000", "0.50 EUR"],
    ["1234567000000", "1234567.00 EUR"],
  ])("are read by people: %s micros are %s", (micros, text) => {
    expect(textOfAmount(eur(BigInt(micros)))).toBe(text);
  });
});
