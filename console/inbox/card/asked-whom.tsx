import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import type { ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { linkTo } from "../../parts/place.ts";
import { clockOf, durationOf, msOf } from "../../parts/words.ts";
import { clientOf } from "../../suite/connection.ts";
import { usePolled } from "../../suite/polled.ts";

/** Who may answer a question that a space shows. */
export function AskedWhom({ spaceId }: Pick<ToolCall, "spaceId">) {
  const { value } = usePolled(
    spaceId,
    async (signal) => (await clientOf(SpaceService).getSpace({ spaceId }, { signal })).space?.title,
    0,
  );
  return (
    <p class="quiet">
      waits for whoever may answer in the space <a href={linkTo("spaces", spaceId)}>{value || spaceId}</a>
    </p>
  );
}

/** As ` · expires 12:03:45, 3 min 10 s left`; empty for a call that waits for ever. */
export function expiryText({ expireTime }: ToolCall): string {
  const end = msOf(expireTime);
  return end === undefined ? "" : ` · expires ${clockOf(end)}, ${durationOf(Math.max(0, end - Date.now()))} left`;
}
