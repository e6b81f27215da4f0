import type { LanguageModelV4Prompt } from "@ai-sdk/provider";

/** What some provider or other refuses a prompt for. */
export function faultsOfPrompt(prompt: LanguageModelV4Prompt): string[] {
  const faults: string[] = [];
  const seen = new Set<string>();
  if (prompt.find(({ role }) => role !== "system")?.role !== "user") faults.push("the user does not begin");
  for (const [index, { role, content }] of prompt.entries()) {
    const next = prompt[index + 1];
    if (role === "system" && index > 0) faults.push(`${index}: a system message in the middle`);
    if (typeof content !== "string" && content.some(isTooDeep)) faults.push(`${index}: nested too deeply`);
    if (content.length === 0) faults.push(`${index}: an empty message of ${role}`);
    if (role === "tool" && prompt[index - 1]?.role !== "assistant") faults.push(`${index}: results without calls`);
    if (role !== "assistant") continue;
    const calls = content.filter((part) => part.type === "tool-call");
    for (const { toolCallId, toolName, input } of calls) {
      if (seen.has(toolCallId)) faults.push(`${index}: the id ${toolCallId} is there twice`);
      seen.add(toolCallId);
      if (!/^[a-zA-Z0-9_-]{1,64}$/.test(toolCallId)) faults.push(`${index}: the id ${JSON.stringify(toolCallId)}`);
      if (!/^[a-zA-Z0-9_-]{1,64}$/.test(toolName)) faults.push(`${index}: a tool called ${JSON.stringify(toolName)}`);
      const isObject = typeof input === "object" && input !== null && !Array.isArray(input);
      if (!isObject) faults.push(`${index}: arguments that are no object`);
    }
    if (content.at(-1)?.type === "reasoning") faults.push(`${index}: a message that ends in a thought`);
    if (content.some((part) => part.type === "text" && part.text.trim() === "")) faults.push(`${index}: an empty text`);
    const results = next?.role === "tool" ? next.content.filter((part) => part.type === "tool-result") : [];
    const asked = calls.map(({ toolCallId, toolName }) => `${toolCallId} ${toolName}`).join();
    const answered = results.map(({ toolCallId, toolName }) => `${toolCallId} ${toolName}`).join();
    if (asked !== answered) faults.push(`${index}: calls ${asked} are answered by ${answered}`);
  }
  return faults;
}

/** Level by level: what is to be found would end a walk down. */
function isTooDeep(part: unknown): boolean {
  let level = [part];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > 250) return true;
    level = level.flatMap((value) => (typeof value === "object" && value !== null ? Object.values(value) : []));
  }
  return false;
}
