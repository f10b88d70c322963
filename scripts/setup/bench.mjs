export function benchSteps() {
  return [];
}
