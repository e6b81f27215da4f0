import { z } from "zod";
import { textContent } from "#runtime/content/text.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { messageForModel, spaceForModel } from "../messages/transcript.ts";
import { agentMember } from "../space/member.ts";
import { callerOfScope } from "../space/space-access.ts";
import { type BuiltInCall, defineBuiltIn, idempotent, pure, type Rooms } from "./built-in.ts";

const spaceId = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, "must be the id of a space");
const historyMessages = 50;

async function activeSpace(rooms: Rooms, call: BuiltInCall): Promise<string> {
  const active = await rooms.membership.activeSpace(call);
  return (
    active ??
    refuse("failed_precondition", "You are not in a space. Call enter_space first.", { reason: "SESSION_NOT_IN_SPACE" })
  );
}

const enterSpace = defineBuiltIn({
  name: "enter_space",
  description:
    "Enter a space, a shared room in which people and other agents write messages and see your visible tool calls. " +
    "It stays your active space until you leave it or enter another one. Returns the space and its latest messages, " +
    "oldest first. An unknown space is an error that names the spaces there are.",
  effect: idempotent,
  arguments: z.strictObject({ space_id: spaceId.describe("The id of the space to enter.") }),
  async run(rooms, call, given) {
    await rooms.access.require(given.space_id, callerOfScope(call.principal));
    const space = await rooms.membership.enter(given.space_id, call);
    const { messages, total } = await rooms.messages.list(space.id, { offset: 0, limit: historyMessages, before: 0n });
    return { space: spaceForModel(space), messages: messages.map(messageForModel), total };
  },
});

const leaveSpace = defineBuiltIn({
  name: "leave_space",
  description: "Leave your active space. Visible tools cannot be called until you enter a space again.",
  effect: idempotent,
  arguments: z.strictObject({}),
  async run(rooms, call) {
    const active = await rooms.membership.activeSpace(call);
    if (active !== undefined) await rooms.membership.leave(active, call);
    return { left: active ?? null };
  },
});

const sendMessage = defineBuiltIn({
  name: "send_message",
  description:
    "Say something in your active space. People who watch the space see it at once; other agents of the space find it " +
    "in their inboxes. It is an error when you are in no space.",
  effect: idempotent,
  arguments: z.strictObject({
    text: z.string().min(1).max(262_144).describe("What to say, as plain text or Markdown."),
  }),
  async run(rooms, call, { text }) {
    const active = await activeSpace(rooms, call);
    await rooms.access.require(active, callerOfScope(call.principal));
    const author = agentMember(call);
    await rooms.membership.join(active, author);
    const message = await rooms.messages.send({
      ...{ spaceId: active, author, content: textContent(text) },
      messageId: `call:${call.callId}`,
    });
    return { space: active, message_id: message.id };
  },
});

const readMessages = defineBuiltIn({
  name: "read_messages",
  description:
    "Read messages of a space, oldest first. Counts from the latest message: offset 0 and limit 20 are the latest 20, " +
    "offset 20 and limit 20 the 20 before those. Tool calls that people can see are among them.",
  effect: pure,
  arguments: z.strictObject({
    offset: z.int().min(0).max(1_000_000).default(0).describe("How many of the latest messages to pass over."),
    limit: z.int().min(1).max(200).default(20).describe("How many messages to read at most."),
    space_id: spaceId.optional().describe("The space to read; your active space unless given."),
  }),
  async run(rooms, call, { offset, limit, space_id }) {
    const asked = space_id ?? (await activeSpace(rooms, call));
    const { id } = await rooms.access.require(asked, callerOfScope(call.principal));
    const { messages, total } = await rooms.messages.list(id, { offset, limit, before: 0n });
    return { space: id, messages: messages.map(messageForModel), total };
  },
});

export const spaceTools = [enterSpace, leaveSpace, sendMessage, readMessages];
