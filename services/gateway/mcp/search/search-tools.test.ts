import { expect, test } from "vitest";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { searched } from "./search-tools.ts";
import { createIndex } from "./tool-index.ts";

const index = createIndex([{ name: "add", description: "Adds.", inputSchema: { type: "object" } }]);

test.each(["request ".repeat(200), "r".repeat(1_001)])(
  "SEC-5 a query is no longer than words of a person are",
  async (query) => {
    const failure = await searched("search_tools", { query }, async () => index).catch(failureFromConnectError);
    expect(failure).toMatchObject({ code: "invalid_argument", reason: "INVALID_REQUEST" });
  },
);
