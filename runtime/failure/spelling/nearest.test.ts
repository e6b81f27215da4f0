import { expect, test } from "vitest";
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
