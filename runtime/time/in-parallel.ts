/** Works on all elements, a limited number at a time, started in order. After a failure nothing further is started. */
export async function inParallel<T>(
  elements: readonly T[],
  limit: number,
  work: (element: T) => Promise<void>,
): Promise<void> {
  const rest = elements.values();
  let hasFailed = false;
  const hand = async () => {
    for (const element of rest) {
      if (hasFailed) return;
      try {
        await work(element);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  };
  const outcomes = await Promise.allSettled(Array.from({ length: Math.min(limit, elements.length) }, hand));
  const failed = outcomes.find((outcome) => outcome.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}
