import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ByteBudget } from "../../handling/messages/byte-budget.ts";
import { FIRST_CREDIT, LARGEST_WINDOW_BYTES, ReceiveWindow, SendWindow } from "./credit.ts";

const KIB = 1024;

/** A sender and a receiver that exchange messages and credit at once, while the reader takes messages as the test says. */
function openDirection(budget: ByteBudget) {
  const sender = new SendWindow();
  const receiver = new ReceiveWindow(budget, FIRST_CREDIT);
  const queue: number[] = [];
  const grant = () => {
    const credit = receiver.grant();
    if (credit) sender.add(credit);
  };
  grant();
  return {
    receiver,
    get queuedBytes() {
      return queue.reduce((sum, bytes) => sum + bytes, 0);
    },
    get queued() {
      return queue.length;
    },
    /** Sends a message of one part if there is credit for it. */
    send(bytes: number): boolean {
      const taken = sender.take(bytes, true);
      if (taken !== bytes) return false;
      expect(receiver.arrived(bytes, 1)).toBe(true);
      queue.push(bytes);
      return true;
    },
    read(): boolean {
      const bytes = queue.shift();
      if (bytes === undefined) return false;
      receiver.consumed(bytes, 1);
      grant();
      return true;
    },
  };
}

describe("credit", () => {
  test("BUS-2 never lets more than the window be on the way or unread, and never stalls a reader", () => {
    const steps = fc.array(fc.oneof(fc.integer({ min: 0, max: 16 * KIB }), fc.constant("read" as const)), {
      maxLength: 300,
    });
    fc.assert(
      fc.property(steps, (script) => {
        const direction = openDirection(new ByteBudget(1024 * KIB));
        for (const step of script) {
          if (step === "read") direction.read();
          else direction.send(step);
          expect(direction.queuedBytes).toBeLessThanOrEqual(LARGEST_WINDOW_BYTES);
          expect(direction.queued).toBeLessThanOrEqual(FIRST_CREDIT.messages);
        }
        while (direction.read());
        expect(direction.send(16 * KIB)).toBe(true);
      }),
    );
  });

  test("BUS-2 starts small, and grows to the largest window as it is used", () => {
    const direction = openDirection(new ByteBudget(64 * 1024 * KIB));
    const burst = () => {
      let bytes = 0;
      while (direction.send(16 * KIB)) bytes += 16 * KIB;
      while (direction.read());
      return bytes;
    };
    expect(burst()).toBe(FIRST_CREDIT.bytes);
    const bursts = Array.from({ length: 8 }, burst);
    expect(Math.max(...bursts)).toBe(LARGEST_WINDOW_BYTES);
  });

  test("BUS-2 of all calls stays within the budget of their connection, with a floor for each", () => {
    const budget = new ByteBudget(256 * KIB);
    const directions = Array.from({ length: 20 }, () => openDirection(budget));
    expect(budget.used).toBeLessThanOrEqual(256 * KIB + 20 * 32 * KIB);
    for (const direction of directions) expect(direction.send(16 * KIB)).toBe(true);
    for (const direction of directions) direction.receiver.close();
    expect(budget.used).toBe(0);
  });

  test("BUS-2 that was not granted is noticed by the receiver", () => {
    const receiver = new ReceiveWindow(new ByteBudget(128 * KIB), { messages: 1, bytes: 64 * KIB });
    expect(receiver.grant()).toEqual({ messages: 1, bytes: 64 * KIB });
    expect(receiver.arrived(64 * KIB, 1)).toBe(true);
    expect(receiver.arrived(1, 0)).toBe(false);
  });

  test("BUS-2 is taken for whole messages, or for pieces that are worth sending", () => {
    const sender = new SendWindow();
    sender.add({ messages: 1, bytes: 20 * KIB });
    expect(sender.take(64 * KIB, true)).toBe(20 * KIB);
    expect(sender.take(44 * KIB, false)).toBeUndefined();
    sender.add({ messages: 0, bytes: 100 });
    expect(sender.take(44 * KIB, false)).toBeUndefined();
    expect(sender.take(100, false)).toBe(100);
    expect(sender.take(0, true)).toBeUndefined();
  });
});
