import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { Failure, messageFromUnknown } from "../failure/failure.ts";
import { readEnvironment } from "./environment.ts";
import { readServiceConfig, serviceConfigFromReader } from "./service-config.ts";
import { settingsOf } from "./settings.ts";

const declared = { meaning: "tested" };

function refusal(work: () => void): string {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(Failure);
    expect(error).toMatchObject({ code: "invalid_argument" });
    return messageFromUnknown(error);
  }
  throw new Error("nothing was refused");
}

describe("readEnvironment", () => {
  test("reads each form, and its default where nothing or only blanks are given", () => {
    const reader = readEnvironment({
      NAME: " x ",
      SIZE: "-3",
      WAIT: "10m",
      PLAIN_WAIT: "1500",
      ON: "Yes",
      NAMES: "a, b,,c ",
      PLACE: "data",
      EMPTY: " ",
    });
    expect(reader.string("NAME", declared)).toBe("x");
    expect(reader.integer("SIZE", declared)).toBe(-3);
    expect(reader.milliseconds("WAIT", declared)).toBe(600_000);
    expect(reader.milliseconds("PLAIN_WAIT", declared)).toBe(1_500);
    expect(reader.boolean("ON", declared)).toBe(true);
    expect(reader.list("NAMES", declared)).toEqual(["a", "b", "c"]);
    expect(reader.path("PLACE", declared)).toBe(resolve("data"));
    expect(reader.string("EMPTY", { ...declared, default: "d" })).toBe("d");
    expect(reader.optionalString("EMPTY", declared)).toBeUndefined();
    expect(reader.integer("NONE", { ...declared, default: 0 })).toBe(0);
    expect(reader.boolean("NONE", { ...declared, default: false })).toBe(false);
    reader.finish();
  });

  test("lists every fault with the variable, what was given and what is expected", () => {
    const reader = readEnvironment({ SIZE: "12", WAIT: "soon", ON: "perhaps", MODE: "c", HALF: "1.5" });
    reader.integer("SIZE", { ...declared, min: 1, max: 10 });
    reader.milliseconds("WAIT", declared);
    reader.boolean("ON", declared);
    reader.string("MODE", { ...declared, oneOf: ["a", "b"] });
    reader.integer("HALF", declared);
    reader.string("ABSENT", declared);
    const message = refusal(() => reader.finish());
    expect(message).toContain('SIZE is "12"; expected a whole number from 1 up to 10');
    expect(message).toContain('WAIT is "soon"; expected milliseconds, or a time like 30s or 10m');
    expect(message).toContain('ON is "perhaps"; expected true or false');
    expect(message).toContain('MODE is "c"; expected one of a, b');
    expect(message).toContain('HALF is "1.5"; expected a whole number');
    expect(message).toContain("ABSENT is not set; expected some text");
  });
});

describe("settingsOf", () => {
  test("tells what a config reads: name, meaning, form and default as an operator writes them", () => {
    const settings = settingsOf((env) => {
      const reader = readEnvironment(env);
      reader.milliseconds("WAIT", { meaning: "How long to wait.", default: 90_000, min: 1_000, max: 3_600_000 });
      reader.integer("SIZE", { meaning: "How much.", unit: "bytes", default: 8, min: 1 });
      reader.string("MODE", { meaning: "Which one.", default: "a", oneOf: ["a", "b"] });
      reader.list("NAMES", { meaning: "Which ones.", form: "list of names", default: ["x", "y"] });
      reader.optionalString("PLACE", { meaning: "Where.", whenUnset: "somewhere" });
      reader.string("ID", { meaning: "Who.", default: "random", whenUnset: "a random one" });
      reader.prefixed("KEY_", { meaning: "Key NAME.", placeholder: "<NAME>" });
    });
    expect(settings).toEqual([
      { name: "WAIT", meaning: "How long to wait.", form: "time from 1s up to 1h", fallback: "90s" },
      { name: "SIZE", meaning: "How much.", form: "bytes from 1", fallback: "8" },
      { name: "MODE", meaning: "Which one.", form: "`a`, `b`", fallback: "a" },
      { name: "NAMES", meaning: "Which ones.", form: "list of names", fallback: "x,y" },
      { name: "PLACE", meaning: "Where.", form: "text", whenUnset: "somewhere" },
      { name: "ID", meaning: "Who.", form: "text", whenUnset: "a random one" },
      { name: "KEY_<NAME>", meaning: "Key NAME.", form: "text" },
    ]);
  });

  test("hears of nothing that is read later", () => {
    const settings = settingsOf(() => undefined);
    readServiceConfig({});
    expect(settings).toEqual([]);
  });
});

describe("readServiceConfig", () => {
  test("has a default for everything, and one instance for the whole process", () => {
    const config = readServiceConfig({});
    expect(config).toMatchObject({
      natsUrl: "nats://127.0.0.1:4222",
      logLevel: "info",
      logFormat: "json",
    });
    expect(config.instance).toMatch(/^[0-9a-f]{8}$/);
    expect(readServiceConfig({}).instance).toBe(config.instance);
  });

  test("SEC-1 a URL with a user is refused, since services sign in with keys", () => {
    const message = refusal(() => readServiceConfig({ NATS_URL: "nats://ann:secret@one:4222,two:4223" }));
    expect(message).toContain('NATS_URL is "nats://one:4222"');
    expect(message).toContain("TOOLBUS_BUS_CREDENTIALS");
    expect(message).not.toContain("secret");
    expect(readServiceConfig({ NATS_URL: "one:4222,two:4223" }).natsUrl).toBe("nats://one:4222,nats://two:4223");
  });

  test("never repeats a password in a fault", () => {
    for (const scheme of ["http", "wss"]) {
      const message = refusal(() => readServiceConfig({ NATS_URL: `${scheme}://ann:secret@one:4222` }));
      expect(message).toContain(`NATS_URL is "${scheme}://one:4222"`);
      expect(message).not.toContain("secret");
    }
  });

  test("its faults and a service's own are in one list", () => {
    const reader = readEnvironment({ TOOLBUS_REPLICAS: "2", TOOLBUS_INSTANCE: "a.b", POOL_SIZE: "x" });
    serviceConfigFromReader(reader);
    reader.integer("POOL_SIZE", declared);
    const message = refusal(() => reader.finish());
    expect(message).toContain("TOOLBUS_REPLICAS");
    expect(message).toContain("TOOLBUS_INSTANCE");
    expect(message).toContain("POOL_SIZE");
  });
});
