/**
 * Common part of the runners' pages: lines for the runner to print, and at most one complaint.
 * Effects: the page.
 */

/** Shows the lines that `work` says and the complaint that it ends with; then marks the page as done. */
export async function report(work: (say: (line: string) => void) => Promise<string | undefined>): Promise<void> {
  const lines = document.querySelector("#lines");
  const complaint = document.querySelector("#complaint");
  if (lines === null || complaint === null) throw new Error("The page has no place for what is said");
  try {
    complaint.textContent = (await work((line) => lines.append(`${line}\n`))) ?? "";
  } catch (error) {
    complaint.textContent = String(error);
  }
  document.body.dataset.state = "done";
}
