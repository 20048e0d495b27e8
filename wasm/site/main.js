import { init as theme } from "./theme.js";
import { init as device } from "./panels/device.js";
import { init as picture } from "./panels/picture.js";
import { init as matmul } from "./panels/matmul.js";
import { init as batch } from "./panels/batch.js";
import { init as playground } from "./panels/playground.js";
import { init as digits } from "./panels/digits.js";
import { init as models } from "./panels/models.js";
import { init as chat } from "./panels/chat.js";

theme();
for (const panel of [picture, matmul, batch, playground, digits, models, chat]) panel();
device(); // last: it opens a device, which the others wait for
