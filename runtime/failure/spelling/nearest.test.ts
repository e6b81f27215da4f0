import { expect, test } from "vitest";
import { computedMs } from "../../time/testing/machine-time.ts";
import { nearest } from "./nearest.ts";

const among = (wanted: string, ...names: string[]) =>
  nearest(
    wanted,
    names.map((name) => ({ name, spellings: [name] })),
  );

test.each([
  ["dmeo", "demo"],
  ["shwo", "show"],
  ["gatway", "gateway"],
  ["Demo", "demo"],
  ["demoo", "demo"],
])("CALL-1 %s is spelled like %s: letters that changed places are one mistake", (wanted, meant) => {
  expect(among(wanted, "assistant", meant, "billing")).toEqual([meant]);
});

test("CALL-1 what is spelled in another way altogether is not meant, and the nearest stands first", () => {
  expect(among("nobody", "demo", "assistant")).toEqual([]);
  const names = ["weather_won", "weather", "weather_mow"];
  expect(among("weather_now", ...names)).toEqual(["weather_mow", "weather", "weather_won"]);
});

test("SEC-5 among a thousand long names a mistake is found in little time, and what is none, too", async () => {
  const long = "abcdefghij".repeat(6).slice(0, 56);
  const candidates = Array.from({ length: 1_000 }, (_, n) => {
    const name = `${long}${n}`;
    return { name, spellings: [name, `@source/${name}`, `source__${name}`] };
  });
  const search = () => {
    for (let n = 0; n < 10; n += 1) expect(nearest("zyxwvutsrq".repeat(6), candidates)).toEqual([]);
  };
  expect(await computedMs(search)).toBeLessThan(1_000);
  expect(nearest(`${long.replace("j", "ij")}7`, candidates)).toEqual([`${long}7`, `${long}0`, `${long}1`]);
});
