/** Does something once a frame, however often it is requested. */
export function createFrames(draw: () => void): { request(): void; cancel(): void } {
  let handle: number | undefined;
  return {
    request() {
      handle ??= requestAnimationFrame(() => {
        handle = undefined;
        draw();
      });
    },
    cancel() {
      if (handle !== undefined) cancelAnimationFrame(handle);
      handle = undefined;
    },
  };
}
