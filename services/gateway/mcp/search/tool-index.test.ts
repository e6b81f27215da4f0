import { expect, test } from "vitest";
import { createIndex, indexOf } from "./tool-index.ts";

const tool = (name: string, description: string, ...parameters: string[]) => ({
  name,
  description,
  inputSchema: { type: "object" as const, properties: Object.fromEntries(parameters.map((one) => [one, {}])) },
});

const tools = [
  tool("git__createPullRequest", "Opens a pull request.", "title", "base"),
  tool("git__list_issues", "Lists the issues of a repository.", "repository"),
  tool("mail__send", "Sends a message to somebody.", "recipient", "subject"),
  tool("cal__add_event", "Adds an event to the calendar.", "start", "end"),
];
const index = createIndex(tools);
const found = (query: string, limit = 10) => index.search(query, limit).map(({ name }) => name);

test.each([
  ["pull request", "git__createPullRequest"],
  ["create a request", "git__createPullRequest"],
  ["issues of a repository", "git__list_issues"],
  ["mesage", "mail__send"],
  ["recip", "mail__send"],
  ["put something into my calendar", "cal__add_event"],
  ["MAIL", "mail__send"],
])("DOOR-1 %s finds %s first", (query, name) => {
  expect(found(query)[0]).toBe(name);
});

test("DOOR-1 no more is found than was asked for, and nothing for words that no tool has", () => {
  expect(found("a", 2).length).toBeLessThanOrEqual(2);
  expect(found("a of to the somebody repository", 2)).toHaveLength(2);
  expect(found("zzzz")).toEqual([]);
  expect(found("__proto__ constructor")).toEqual([]);
});

test("DOOR-1 the index of a list is made once", () => {
  expect(indexOf("one", () => tools)).toBe(
    indexOf("one", () => {
      throw new Error("it is known");
    }),
  );
  expect(indexOf("another", () => []).byName.size).toBe(0);
});
