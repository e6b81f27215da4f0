import { create } from "@bufbuild/protobuf";
import {
  ElicitationSchema,
  InputKind,
  type InputRequest,
  InputRequestSchema,
} from "#gen/toolbus/provider/v1/input_pb.ts";
import { LOGIN_PATH, urlBelow } from "#runtime/config/public-url.ts";
import type { LoginNeeded } from "../servers/login-needed.ts";

const NOTHING_TO_FILL_IN = JSON.stringify({ type: "object", properties: {} });

/** Asks whoever is in the space of the call to have its principal log in; the call goes on when that is said to be done. */
export function loginQuestion(
  needed: LoginNeeded,
  publicUrl: URL | undefined,
): { kind: InputKind; request: InputRequest } {
  const { server = "" } = needed.metadata ?? {};
  const message = `${needed.message}. Accept when that is done.`;
  if (publicUrl === undefined || needed.isExchanged)
    return asked(InputKind.FORM, { message, requestedSchemaJson: NOTHING_TO_FILL_IN });
  const url = `${urlBelow(publicUrl, LOGIN_PATH)}?server=${encodeURIComponent(server)}`;
  return asked(InputKind.URL, { message, url });
}

function asked(kind: InputKind, question: { message: string; requestedSchemaJson?: string; url?: string }) {
  const value = create(ElicitationSchema, question);
  return { kind, request: create(InputRequestSchema, { id: "login", request: { case: "elicitation", value } }) };
}
