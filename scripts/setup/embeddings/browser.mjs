export function browserSteps() {
  return [];
}
