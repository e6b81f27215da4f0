// Every method with messages that nobody would write: each field is left out, or has something of its type, of the edges of its type, or of
// no type at all.

import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { type ProbeRequest, send } from "../../../../services/gateway/testing/http-probe.ts";
import { createRandom, type Random } from "../../../faults/random.ts";
import type { Attack, Ground, PlayOptions } from "../../attack.ts";
import { offered } from "../doors/methods.ts";

const MOST_DEEP = 6;
const AT_ONCE = 8;
/** Whoever sends more after a refusal may be cut off before it has read that. */
const MOST_READ_BYTES = 2 ** 20;
/** Of calls to methods that go on by themselves, like a watch, the beginning is enough. */
const PATIENCE_MS = { unary: 20_000, other: 500 };

const texts = [
  "",
  "alices",
  "keeper",
  "mallorys",
  "*",
  ">",
  "a.b",
  "\u0000",
  "\ud800",
  "😀".repeat(40),
  "x".repeat(5_000),
  "{",
  "[1]",
  "1e999",
];
const numbers = [
  0,
  -1,
  1,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31),
  2 ** 53,
  1e300,
  0.5,
  "9223372036854775807",
  "-9223372036854775808",
  "NaN",
];
const strange = [null, true, 0, "", [], {}, [[]], { a: 1 }, "x".repeat(200), -0.1];

type Json = unknown;

function fieldOf(random: Random, field: DescField, depth: number): Json {
  if (random.next() < 0.08) return random.pick(strange);
  const one = () => singleOf(random, field, depth);
  const many = () => Array.from({ length: Math.floor(random.next() * 4) }, one);
  if (field.fieldKind === "list") return random.next() < 0.02 ? Array.from({ length: 3_000 }, one) : many();
  if (field.fieldKind === "map") return Object.fromEntries(many().map((value) => [random.pick(texts), value]));
  return one();
}

function singleOf(random: Random, field: DescField, depth: number): Json {
  if (field.message) return messageOf(random, field.message, depth + 1);
  if (field.enum) return random.pick([...field.enum.values.map(({ name }) => name), 0, -1, 999, "NONE"]);
  if (field.scalar === ScalarType.BOOL) return random.next() < 0.5;
  if (field.scalar === ScalarType.STRING) return random.pick(texts);
  if (field.scalar === ScalarType.BYTES) return random.pick(["", "AA==", "====", "é", "A".repeat(4_000)]);
  return random.pick(numbers);
}

function messageOf(random: Random, message: DescMessage, depth = 0): Json {
  if (message.typeName.startsWith("google.protobuf."))
    return random.pick<Json>(["1s", "-1s", "2026-01-01T00:00:00Z", "9999-99-99", {}, null, 1, "1e99s"]);
  const often = depth > MOST_DEEP ? 0 : 0.6;
  const fields = message.fields.filter(() => random.next() < often);
  return Object.fromEntries(fields.map((field) => [field.jsonName, fieldOf(random, field, depth)]));
}

/** Says when the answer is one that nobody may be given. */
async function sendOdd({ url, keys }: Ground, random: Random): Promise<string | undefined> {
  const { parent, name, input, methodKind } = random.pick(offered);
  const json = Buffer.from(JSON.stringify(messageOf(random, input)));
  const isUnary = methodKind === "unary";
  const length = Buffer.alloc(5);
  length.writeUInt32BE(json.length, 1);
  const request: ProbeRequest = {
    method: "POST",
    path: `/${parent.typeName}/${name}`,
    headers: {
      "content-type": isUnary ? "application/json" : "application/connect+json",
      "connect-timeout-ms": String(isUnary ? 10_000 : PATIENCE_MS.other),
      "x-api-key": keys.mallory,
    },
    body: isUnary ? json : Buffer.concat([length, json]),
  };
  const patienceMs = isUnary ? PATIENCE_MS.unary : 5_000;
  const answer = await Promise.race([
    send(url, "2", request).catch(() => undefined),
    new Promise<"late">((resolve) => setTimeout(resolve, patienceMs, "late").unref()),
  ]);
  const what = `${parent.typeName}/${name} ${json.subarray(0, 300)}`;
  if (answer === "late") return `${what} had no answer`;
  if (answer === undefined) return json.length > MOST_READ_BYTES ? undefined : `${what} was cut off`;
  const text = answer.body.toString("latin1");
  const isFault = /"code":"(internal|unknown|data_loss)"|REASON_INTERNAL/.test(text);
  return isFault && !text.includes("REASON_REQUEST_MALFORMED") ? `${what}: ${text.slice(0, 300)}` : undefined;
}

async function play(ground: Ground, { isShort, seed }: PlayOptions) {
  const random = createRandom(seed);
  const endsAt = performance.now() + (isShort ? 4_000 : 60_000);
  const reached = new Set<string>();
  let tries = 0;
  const go = async () => {
    while (performance.now() < endsAt && reached.size < 20) {
      tries += 1;
      const got = await sendOdd(ground, random);
      if (got !== undefined) reached.add(got);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, go));
  return { tries, reached: [...reached] };
}

export const messages: readonly Attack[] = [
  { name: "messages at random, to every method", requirement: "SEC-5", play },
];
