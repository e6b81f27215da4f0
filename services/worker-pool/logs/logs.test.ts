import { describe, expect, test } from "vitest";
import { LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createRedaction } from "#runtime/content/redaction.ts";
import { createLogHub } from "./log-hub.ts";
import { type LogLine, writtenLineFromText } from "./log-line.ts";

const line = (message: string, source = "a"): LogLine => {
  const labels = { source, function: "", callId: "", traceId: "", principal: "" };
  return { timeMs: 0, ...labels, level: LogLevel.INFO, message, fieldsJson: "" };
};

describe("lines", () => {
  test("WORK-6 a line of the SDK is read, any other is a message", () => {
    const text = '{"toolbus":"log","time":1.5,"level":"warn","message":"m","id":3,"fields":{"a":[1]}}';
    const expected = { timeMs: 1_500, level: LogLevel.WARN, message: "m", fieldsJson: '{"a":[1]}', id: 3 };
    expect(writtenLineFromText(text, 9)).toEqual(expected);
    for (const other of ["plain", '{"a":1}', '{"toolbus":"log"', '{"toolbus":"log"}']) {
      expect(writtenLineFromText(other, 9)).toEqual({
        timeMs: 9,
        level: LogLevel.INFO,
        message: other,
        fieldsJson: "",
      });
    }
  });

  test("a time or level that makes no sense is replaced", () => {
    const text = '{"toolbus":"log","time":1e300,"level":"loud","message":"m"}';
    expect(writtenLineFromText(text, 9)).toEqual({ timeMs: 9, level: LogLevel.INFO, message: "m", fieldsJson: "" });
  });
});

describe("redaction", () => {
  test("WORK-4 values of secrets are struck out, the longer one first, line by line, and inside of JSON", () => {
    const values = {
      SHORT: "hush",
      LONG: "hush-hush",
      PEM: "-----BEGIN\nabcdef\n-----END",
      QUOTE: 'say "no"',
      TINY: "no",
    };
    const redact = createRedaction(new Map(Object.entries(values)));
    expect(redact("a hush-hush b hush c no")).toBe("a [secret LONG] b [secret SHORT] c no");
    expect(redact("abcdef")).toBe("[secret PEM]");
    expect(redact(JSON.stringify({ a: 'say "no"' }))).toBe('{"a":"[secret QUOTE]"}');
  });

  test("without secrets nothing changes", () => {
    expect(createRedaction(new Map())("any")).toBe("any");
  });
});

describe("the hub", () => {
  test("WORK-6 a watcher gets the lines of its source in order, and is told how many it missed", async () => {
    const hub = createLogHub();
    const stop = new AbortController();
    const lines = hub.watch({ source: "a", principal: "" }, stop.signal)[Symbol.asyncIterator]();
    const first = lines.next();
    hub.write(line("other", "b"));
    hub.write(line("first"));
    expect((await first).value).toMatchObject({ case: "line", value: { log: { message: "first" } } });
    for (let count = 0; count < 2_010; count += 1) hub.write(line(`line ${count}`));
    expect((await lines.next()).value).toMatchObject({ case: "dropped", value: { count: 10n } });
    expect((await lines.next()).value).toMatchObject({ case: "line", value: { log: { message: "line 10" } } });
    stop.abort();
    let last: unknown;
    for (let next = await lines.next(); !next.done; next = await lines.next()) last = next.value.value;
    expect(last).toMatchObject({ log: { message: "line 2009" } });
  });
});
