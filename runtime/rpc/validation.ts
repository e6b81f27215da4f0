import type { Interceptor } from "@connectrpc/connect";
import { createValidateInterceptor } from "@connectrpc/validate";
import { contractValidator } from "../schema/contract/contract-validator.ts";

/** Checks requests against the constraints of the contract: `invalid_argument`, naming the field. */
export const contractValidation: Interceptor = createValidateInterceptor({ validator: contractValidator });
