import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "#gen/health/v1/health_pb.ts";
import { Badge, Fault } from "../parts/notice.tsx";
import { counted } from "../parts/words.ts";
import { clientOf } from "../suite/connection.ts";
import { usePolled } from "../suite/polled.ts";

const healthMs = 5_000;

/** Whether the services serve, in a line that unfolds: by itself where one does not. */
export function Services() {
  const { value, fault } = usePolled(
    "health",
    async (signal) => (await clientOf(Health).list({}, { signal })).statuses,
    healthMs,
  );
  const names = Object.keys(value ?? {})
    .filter((name) => name !== "")
    .sort();
  const isUp = (name: string) => value?.[name]?.status === ServingStatus.SERVING;
  const down = names.filter((name) => !isUp(name));
  return (
    <>
      <Fault text={fault} />
      {value && (
        <details class="grow" open={down.length > 0}>
          <summary>
            {down.length === 0 ? (
              "all services serve"
            ) : (
              <span class="fault">{counted(down.length, "service")} not there</span>
            )}
          </summary>
          <ul class="list services">
            {names.map((name) => (
              <li key={name}>
                <Badge tone={isUp(name) ? "good" : "bad"}>{isUp(name) ? "serving" : "not there"}</Badge> {name}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}
