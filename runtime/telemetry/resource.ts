import { type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import {
  ATTR_SERVICE_INSTANCE_ID,
  ATTR_SERVICE_NAME,
  ATTR_SERVICE_NAMESPACE,
} from "@opentelemetry/semantic-conventions";

export interface ProcessIdentity {
  service: string;
  instance?: string;
}

/** How collectors know the process that a span or a reading comes from. */
export function resourceOf({ service, instance }: ProcessIdentity): Resource {
  return resourceFromAttributes({
    [ATTR_SERVICE_NAMESPACE]: "toolbus",
    [ATTR_SERVICE_NAME]: service,
    ...(instance !== undefined && { [ATTR_SERVICE_INSTANCE_ID]: instance }),
  });
}
