import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { runInTrace } from "../telemetry/trace-context.ts";
import { createLogger } from "./logger.ts";

function openSink(): { destination: Writable; text: () => string } {
  let text = "";
  const destination = new Writable({
    write(chunk, _encoding, done) {
      text += chunk;
      done();
    },
  });
  return { destination, text: () => text };
}

test("a line is JSON with service, instance and level, and the ids of the trace that it belongs to", () => {
  const sink = openSink();
  const logger = createLogger({ name: "spaces", instance: "i1", destination: sink.destination });
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  runInTrace({ traceparent }, () => logger.info({ tool: "x" }, "hello"));
  expect(JSON.parse(sink.text())).toMatchObject({
    level: "info",
    service: "spaces",
    instance: "i1",
    tool: "x",
    msg: "hello",
    trace_id: "0af7651916cd43dd8448eb211c80319c",
    span_id: "b7ad6b7169203331",
  });
});

test("WORK-4 secrets never stand in a log", () => {
  const sink = openSink();
  const logger = createLogger({ name: "x", destination: sink.destination });
  logger.info({ secrets: { key: "hush" }, request: { secrets: ["hush"], authorization: "hush" } }, "call");
  expect(sink.text()).not.toContain("hush");
});

test("SEC-7 of an error stands in a log what it says, and nothing of the request that it was thrown for", () => {
  const sink = openSink();
  const requestBodyValues = { messages: ["private"] };
  const refused = Object.assign(new Error("busy"), {
    statusCode: 503,
    requestBodyValues,
    responseHeaders: { cookie: "private" },
  });
  createLogger({ name: "x", destination: sink.destination }).warn(
    { err: new AggregateError([refused], "all failed") },
    "again",
  );
  expect(sink.text()).not.toContain("private");
  const one = { type: "Error", message: "busy", stack: expect.any(String), statusCode: 503 };
  expect(JSON.parse(sink.text()).err).toMatchObject({ type: "AggregateError", aggregateErrors: [one] });
});

test("the form for people is one line an entry", () => {
  const sink = openSink();
  const logger = createLogger({ name: "spaces", format: "pretty", destination: sink.destination });
  logger.warn({ tool: "x" }, "careful");
  expect(sink.text()).toMatch(/^\[.*WARN.*spaces · careful.*\{"tool":"x"\}.*\n$/);
});
