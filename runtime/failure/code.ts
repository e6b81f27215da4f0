import { Code } from "@connectrpc/connect";
import { codeFromString, codeToString } from "@connectrpc/connect/protocol-connect";
import type { FailureCode } from "./failure.ts";

/* The sixteen words are those of the Connect protocol. */

export function codeFromFailureCode(failureCode: FailureCode): Code {
  return codeFromString(failureCode) ?? Code.Unknown;
}

export function failureCodeFromCode(code: Code): FailureCode {
  return code in Code ? (codeToString(code) as FailureCode) : "unknown";
}
