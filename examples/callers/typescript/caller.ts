// Opens a session, offers it a tool of this program, and lets an agent call it.
//
// Run it with `npx node examples/callers/typescript/caller.ts A-17`, the suite's address in TOOLBUS_URL and a key in TOOLBUS_API_KEY.

import { createToolbus, tool } from "toolbus";

const findOrder = tool<{ order: string }>({
  name: "find_order",
  description: "Tells where an order is",
  input: { type: "object", properties: { order: { type: "string" } }, required: ["order"] },
  run: ({ order }) => ({ order, state: "on its way" }),
});

const session = await createToolbus().openSession("clerk");
await session.offer("desk", [findOrder]); // the agent sees desk_find_order
const { text } = await session.run(process.argv[2] ?? "A-17").result();
await session.close();
console.log(text);
