/* Chat templates of the ChatML family, rendered as the model's own Jinja template would.
 *
 * The template is read, not run: after removing insignificant white space it must be one of the
 * forms listed in chat.c (plain ChatML, with a default system text as SmolLM2 and Qwen 1.5/2 have
 * it, or Qwen 2.5's without tools). Anything else is refused. */
#ifndef LM_CHAT_H
#define LM_CHAT_H

#include <stdbool.h>
#include <stddef.h>

#include "lm/text.h"

struct lm_message {
  const char* role; /* "system", "user", "assistant" */
  const char* content;
};

struct lm_chat; /* a recognised template */

/* Recognise a Jinja template (tokenizer.chat_template). Errors: RP_ERR_UNSUPPORTED with the remedy
 * when it is NULL or of another family. */
int lm_chat_new(struct lm_chat** out, const char* jinja);
void lm_chat_free(struct lm_chat* c);

/* The block that is put in front when the first message is not of the system ("<|im_start|>system
 * ...<|im_end|>\n"), or NULL. */
const char* lm_chat_default_system(const struct lm_chat* c);

/* Append the rendered conversation. The result is to be encoded with LM_ENCODE_SPECIAL.
 * `add_generation_prompt` opens the assistant's turn at the end. An empty system content stays an
 * empty system message. */
int lm_chat_render(const struct lm_chat* c, const struct lm_message* messages, size_t n,
                   bool add_generation_prompt, struct lm_text* out);

#endif
