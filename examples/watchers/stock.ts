// A service of your own that executes a tool: it watches for calls and submits results, from wherever it can reach the
// gateway. Run it with `npx node examples/watchers/stock.ts`, the suite's address in TOOLBUS_URL and a key, if the gateway wants
// one, in TOOLBUS_API_KEY. Start it twice, and each call goes to one of the two.

import { createToolbus } from "toolbus";

const stock: Record<string, number> = { screws: 1_200, nuts: 7 };

const watching = await createToolbus().watch({
  tools: {
    stock_level({ article }: { article: string }, { callId }) {
      console.log(`${callId}: ${article}`);
      return stock[article] ?? Promise.reject(new Error(`there is no article ${article}`));
    },
  },
});
console.log("watching");
await watching.ended;
