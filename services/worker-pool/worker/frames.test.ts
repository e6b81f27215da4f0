import fc from "fast-check";
import { expect, test } from "vitest";
import { lineFromCancel, lineFromReply, lineFromRequest, parseFrame } from "./frames.ts";

test("WORK-4 a request is one line, whatever blanks its JSON has", () => {
  fc.assert(
    fc.property(fc.nat(), fc.object(), fc.constantFrom(undefined, 2, "\t", "\r\n "), (id, value, indent) => {
      const argumentsJson = JSON.stringify(value, null, indent === "\r\n " ? 1 : indent).replaceAll(
        "\n",
        indent === "\r\n " ? "\r\n" : "\n",
      );
      const request = { function: "f", argumentsJson, configJson: "{}", secretsJson: '{"A":"b"}', idempotencyKey: "k" };
      const line = lineFromRequest(id, request);
      expect(line.indexOf("\n")).toBe(line.length - 1);
      expect(JSON.parse(line)).toEqual({
        id,
        function: "f",
        kwargs: JSON.parse(argumentsJson),
        config: {},
        secrets: { A: "b" },
        idempotency_key: "k",
      });
    }),
  );
  expect(lineFromCancel(7)).toBe('{"cancel":7}\n');
});

test("WORK-4 the text of a result is taken as it stands", () => {
  fc.assert(
    fc.property(fc.nat(), fc.json(), fc.nat({ max: 3 }), (id, json, logLines) => {
      const logs = logLines > 0 ? `,"logs":${logLines}` : "";
      const frame = parseFrame(`{"id":${id},"result":${json},"error":null${logs}}`);
      expect(frame).toEqual({ kind: "result", id, resultJson: json, logLines });
    }),
  );
  const digits = "12345678901234567890.10";
  expect(parseFrame(`{"id":1,"result":[${digits}],"error":null}`)).toMatchObject({ resultJson: `[${digits}]` });
});

test("a result in any other form of JSON is written again", () => {
  for (const line of [
    '{"error":null,"result":{"a":1},"id":1}',
    '{ "id": 1, "result": {"a": 1}, "error": null }',
    '{"id":1,"result":{"a":1},"error":null,"more":1}',
    '{"id":1,"result":{"a":1}}',
  ]) {
    expect(parseFrame(line)).toEqual({ kind: "result", id: 1, resultJson: '{"a":1}', logLines: 0 });
  }
});

test("errors, progress and the first frame", () => {
  const error = { kind: "error", id: 2, error: "ValueError: bad", logLines: 1 };
  expect(parseFrame('{"id":2,"result":null,"error":"ValueError: bad","logs":1}')).toEqual(error);
  const progress = { done: 1, total: 0, message: "" };
  expect(parseFrame('{"id":2,"progress":{"done":1}}')).toEqual({ kind: "progress", id: 2, progress });
  const ready = { kind: "ready", protocol: 1, pid: 5 };
  expect(parseFrame('{"ready":true,"pid":5,"functions":["f"]}')).toEqual(ready);
  expect(parseFrame('{"ready":true,"protocol":2,"pid":5,"functions":["f"]}')).toEqual({ ...ready, protocol: 2 });
  expect(parseFrame('{"fatal":"why"}')).toEqual({ kind: "fatal", reason: "why" });
});

test("what is no frame is told apart", () => {
  for (const line of [
    "",
    "hello",
    "[]",
    "1",
    "null",
    "{}",
    '{"id":"1","result":1}',
    '{"id":1}',
    '{"id":1,"result":1',
  ]) {
    expect(parseFrame(line)).toBeUndefined();
  }
});

test("WORK-11 a question of a worker keeps the text of its arguments, whatever they and the tool's name hold", () => {
  const given = '{"n":12345678901234567890,"text":"\\",\\"tool\\":\\"x"}';
  for (const name of ["echo", '","tool":"other']) {
    const line = `{"id":7,"ask":3,"arguments":${given},"tool":${JSON.stringify(name)}}`;
    expect(parseFrame(line)).toEqual({
      kind: "ask",
      id: 7,
      askId: 3,
      ask: { kind: "call tool", name, argumentsJson: given },
    });
  }
  const other = '{"ask":3,"tool":"echo","id":7,"arguments":{"a":1}}';
  expect(parseFrame(other)).toMatchObject({ kind: "ask", ask: { name: "echo", argumentsJson: '{"a":1}' } });
  expect(parseFrame('{"id":7,"ask":3,"arguments":[],"tool":"echo"}')).toBeUndefined();
  expect(parseFrame('{"id":7,"ask":3,"arguments":{}}')).toBeUndefined();
  expect(parseFrame('{"id":7,"ask":3,"list":true}')).toMatchObject({ ask: { kind: "list tools" } });
  expect(parseFrame('{"id":7,"ask":3,"generate":{"prompt":1}}')).toBeUndefined();
});

test("WORK-11 a reply is one line, with the result as it came", () => {
  const line = lineFromReply(3, { kind: "result", resultJson: '{\n"n": 12345678901234567890}' });
  expect(line).toBe('{"reply":3,"result":{ "n": 12345678901234567890},"error":null}\n');
  expect(lineFromReply(4, { kind: "error", error: "no\n" })).toBe('{"reply":4,"result":null,"error":"no\\n"}\n');
});
