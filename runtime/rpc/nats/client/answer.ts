import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { HEAVY_VALUES, ownTurn } from "../../../collections/turns/own-turn.ts";
import { maxToolValues } from "../../../schema/json/json-size.ts";
import { claimedPrincipal } from "../../access/callers.ts";
import { hasMoreFields } from "../../handling/messages/field-count.ts";
import { isShort } from "../../handling/messages/many-values.ts";
import { unknownOutcome } from "../call/delivery.ts";
import type { ClientContext } from "./client-call.ts";

/** Who asked, and what ends his asking. */
interface Asked {
  readonly header: Headers;
  readonly signal: AbortSignal;
}

/**
 * The message of an answer, at once where it is short; one of many values is parsed in a turn of whoever asked. Where a service asks by
 * itself it is that of who answers, at `cancelSubject`: else one provider held up the answers of all.
 */
export function parseAnswer<O extends DescMessage>(
  desc: O,
  body: Uint8Array,
  asked: Asked,
  { cancelSubject }: Pick<ClientContext, "cancelSubject">,
): MessageShape<O> | Promise<MessageShape<O>> {
  const parse = () => reading(desc, () => fromBinary(desc, body));
  return isShort(body) ? parse() : turnToParse(desc, body, asked, cancelSubject).then(parse);
}

async function turnToParse(desc: DescMessage, body: Uint8Array, asked: Asked, answerer: string): Promise<void> {
  const has = (most: number) => reading(desc, () => hasMoreFields(body, desc, most));
  if (!has(HEAVY_VALUES)) return;
  if (has(maxToolValues))
    throw unknownOutcome(`the answer has more than ${maxToolValues} values`, Code.ResourceExhausted);
  await ownTurn({ sender: claimedPrincipal(asked.header, answerer), signal: asked.signal });
}

function reading<T>({ typeName }: DescMessage, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw unknownOutcome(`the answer is no ${typeName}`, Code.Internal, error);
  }
}
