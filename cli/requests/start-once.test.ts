import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { startOnce } from "./start-once.ts";

describe("a run that is started from the command line", () => {
  test("LOOP-13 is asked for again under the same key when the answer is lost, and for each command under another", async () => {
    const start = async () => {
      const keys: string[] = [];
      const answer = await startOnce(undefined, async (key) => {
        keys.push(key);
        if (keys.length < 3) throw new ConnectError("the connection broke", Code.Unavailable);
        return "started";
      });
      expect(answer).toBe("started");
      return keys;
    };
    const [one, other] = [await start(), await start()];
    expect(one).toEqual(Array(3).fill(one[0]));
    expect(one[0]).not.toBe("");
    expect(other[0]).not.toBe(one[0]);
  });

  test("is asked for a few times at most, once where it is refused, and under the key that is given", async () => {
    for (const [code, times] of [
      [Code.Unavailable, 3],
      [Code.InvalidArgument, 1],
      [Code.Internal, 1],
    ] as const) {
      const keys: string[] = [];
      const send = async (key: string) => {
        keys.push(key);
        throw new ConnectError("no", code);
      };
      await expect(startOnce("mine", send)).rejects.toMatchObject({ code });
      expect(keys).toEqual(Array(times).fill("mine"));
    }
  });
});
