export function cSteps() {
  return [];
}
