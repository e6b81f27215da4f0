import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { Empty, Fault } from "../parts/notice.tsx";
import { linkTo, place } from "../parts/place.ts";
import { Screen } from "../parts/screen.tsx";
import { counted } from "../parts/words.ts";
import { clientOf } from "../suite/connection.ts";
import { usePolled } from "../suite/polled.ts";
import { SpaceView } from "./space-view.tsx";

/** Spaces, and what happens in the one that is chosen. */
export function SpacesScreen() {
  const { id } = place.value;
  const { value, fault } = usePolled(
    "spaces",
    async (signal) => {
      const page = (pageToken: string) => clientOf(SpaceService).listSpaces({ pageSize: 1_000, pageToken }, { signal });
      return (await allPages(page)).flatMap(({ spaces }) => spaces);
    },
    5_000,
  );
  return (
    <Screen title="Spaces" aside={value && <span class="quiet">{value.length}</span>}>
      <Fault text={fault} />
      {value?.length === 0 && (
        <Empty>
          No space yet. Make one: <code>toolbus spaces create ID</code>
        </Empty>
      )}
      <div class="two">
        <ul class="list">
          {value?.map((space) => (
            <li key={space.id}>
              <a href={linkTo("spaces", space.id)} aria-current={space.id === id ? "true" : undefined}>
                <strong>{space.title || space.id}</strong>{" "}
                <span class="quiet">{counted(space.members.length, "member")}</span>
              </a>
            </li>
          ))}
        </ul>
        <div class="run-side">{id ? <SpaceView key={id} spaceId={id} /> : <p class="quiet">Choose a space.</p>}</div>
      </div>
    </Screen>
  );
}
