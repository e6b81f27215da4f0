import { createToolbus, tool } from "toolbus";

const orders = { "A-17": "on its way", "B-4": "delivered" };

const findOrder = tool({
  name: "order",
  description: "Tells where an order is",
  input: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
  run({ id }) {
    console.log(`asked for ${id}`);
    return { id, state: orders[id] ?? "not known" };
  },
});

const session = await createToolbus().openSession("clerk");
await session.offer("shop", [findOrder]);
for (const id of process.argv.slice(2)) console.log((await session.run(id).result()).text);
await session.close();
