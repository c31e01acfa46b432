// The start of the page without a server: the choice of a scenario file, then the page of the explorer.

import "./main.js";
import { openScenario, openedScenario } from "./service.js";

function showFailure(message) {
  const failure = document.getElementById("failure");
  failure.textContent = message;
  failure.hidden = false;
}

/** Loads the page again for a scenario, without the values of the one before. */
async function reload(scenario) {
  const failure = await openScenario(scenario);
  if (failure) showFailure(failure);
  else location.replace(location.pathname);
}

const choice = document.createElement("div");
choice.className = "selects";
choice.innerHTML = `<label>Scenario file <input type="file" id="scenario-file" accept=".toml"></label>
<button type="button" id="scenario-built-in">Built-in scenario</button>
<a href="../index.html">Documentation</a>
<a href="licences.txt">Licences</a>`;
document.querySelector("header").append(choice);
const file = document.getElementById("scenario-file");
file.addEventListener("change", async () => {
  const [chosen] = file.files;
  if (chosen) await reload({ name: chosen.name, text: await chosen.text() }).catch((error) => showFailure(error.message));
});
const builtIn = document.getElementById("scenario-built-in");
builtIn.hidden = !openedScenario();
builtIn.addEventListener("click", () => reload(null));
