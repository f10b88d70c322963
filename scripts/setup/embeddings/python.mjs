export function pythonSteps() {
  return [];
}
