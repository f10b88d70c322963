export function rustSteps() {
  return [];
}
