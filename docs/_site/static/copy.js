// A button on every block of code. What it copies has no prompt signs, and of a console only the commands.
function readCode(block) {
  const code = block.querySelector("pre").cloneNode(true);
  const left = code.querySelectorAll(".gp, .go");
  for (const part of left) part.remove();
  return left.length ? code.textContent.replace(/^\s*\n/gm, "").trimEnd() : code.textContent;
}

addEventListener("DOMContentLoaded", () => {
  if (!navigator.clipboard) return; // a page that comes from a disk has none
  for (const block of document.querySelectorAll("div.highlight")) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "copy", textContent: "copy" });
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(readCode(block));
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 1500);
    });
    block.append(button);
  }
});
