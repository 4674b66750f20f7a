// While a sound is played, a line in its pictures says where; a click on a
// picture plays from there.
(() => {
  const root = document.documentElement;
  const follow = (event) => {
    const seconds = Number(event.target.dataset?.seconds);
    if (!seconds) return;
    root.classList.add("atf-plays");
    const share = event.target.currentTime / seconds;
    root.style.setProperty("--atf-at", `${100 * share}%`);
  };
  for (const name of ["timeupdate", "seeking"]) {
    document.addEventListener(name, follow, true);
  }
  document.addEventListener("click", async (event) => {
    const copy = event.target.closest?.(".atf-copy");
    if (copy) {
      const text = copy.closest("figure").querySelector("pre").textContent;
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
      setTimeout(() => (copy.textContent = "Copy"), 2000);
    }
    const plot = event.target.closest?.(".atf-plot");
    const audio = document.querySelector("#atf-shown audio");
    if (!plot || !audio) return;
    const box = plot.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    audio.currentTime = share * Number(audio.dataset.seconds);
  });
  // A new sound has not been played.
  new MutationObserver((changes) => {
    const isNew = (node) => node.querySelector?.("audio[data-seconds]");
    if (changes.some((each) => [...each.addedNodes].some(isNew))) {
      root.classList.remove("atf-plays");
    }
  }).observe(root, { childList: true, subtree: true });
})();
