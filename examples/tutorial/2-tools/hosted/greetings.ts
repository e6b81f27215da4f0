import type { HostedModule, HostedTool } from "toolbus/hosted";

const greet: HostedTool<{ name: string }> = {
  name: "greet",
  description: "Greets somebody",
  effect: "pure",
  inputSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
  run: ({ name }) => `Good morning, ${name}!`,
};

export default { tools: [greet] } satisfies HostedModule;
