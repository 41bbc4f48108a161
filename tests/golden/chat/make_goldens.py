"""Render chat templates with Jinja itself, as Hugging Face does (pip install jinja2).

Writes chat.json: a list of templates, each with its conversations and what they render to, or with
"refused": true where the library is to refuse the template.
"""
import json
import os

from jinja2 import Environment

HERE = os.path.dirname(os.path.abspath(__file__))
BODY = r"{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
PROMPT = r"{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
LOOP, END = "{% for message in messages %}", "{% endfor %}"


def default(text, end="<|im_end|>\\n"):
    return ("{% if loop.first and messages[0]['role'] != 'system' %}"
            "{{ '<|im_start|>system\\n" + text + end + "' }}{% endif %}")


SMOLLM2 = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
QWEN25 = r"""{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'Short.' }}
    {%- endif %}
    {{- "\n\n# Tools\n" }}
    {%- for tool in tools %}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "<|im_end|>\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}
    {%- else %}
        {{- '<|im_start|>system\nYou are short.<|im_end|>\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {{- '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
"""

TEMPLATES = {
    # SmolLM2's GGUF has line feeds, not escapes, inside of literals.
    "smollm2": (LOOP + default(SMOLLM2) + BODY + END + PROMPT).replace("\\n", "\n"),
    "smollm2 with escapes": LOOP + default(SMOLLM2) + BODY + END + PROMPT,
    "chatml": LOOP + BODY + END + PROMPT,
    "chatml, prompt undefined": "{% if not add_generation_prompt is defined %}"
    "{% set add_generation_prompt = false %}{% endif %}" + LOOP + BODY + END + PROMPT,
    "chatml over lines": "{%- for message in messages -%}\n  {{- \"<|im_start|>\" ~ message.role }}\n"
    "{%- endfor %}",
    "chatml with dots and double quotes": '{% for message in messages %}\n'
    '    {{- "<|im_start|>" + message.role + "\\n" + message.content + "<|im_end|>\\n" }}\n'
    '{%- endfor %}\n{# opens the turn #}\n{% if add_generation_prompt %}\n'
    '    {{- "<|im_start|>" + "assistant\\n" -}}\n{% endif %}\n',
    "qwen 1.5": LOOP + default("You are a helpful assistant.") + BODY + END + PROMPT,
    "escapes": LOOP + default("It\\'s \\\"so\\\" \\\\ \\tx") + BODY + END + PROMPT,
    "unknown escape": LOOP + default("a\\qb") + BODY + END + PROMPT,
    "escape by number": LOOP + default("caf\\u00e9") + BODY + END + PROMPT,
    "qwen 2.5": QWEN25,
    "trims": LOOP + BODY.replace("message['content']", "message['content'] | trim") + END + PROMPT,
    "space between blocks": LOOP + BODY + " " + END + PROMPT,
    "text in front": "x" + LOOP + BODY + END + PROMPT,
    "other marks": LOOP + "{{ '[INST]' + message['content'] + '[/INST]' }}" + END,
    "other prompt": LOOP + BODY + END + PROMPT.replace("assistant", "bot"),
    "unfinished": LOOP + BODY[:-1],
    "empty": "",
}
REFUSED = {"escape by number", "chatml over lines", "trims", "space between blocks",
           "text in front", "other marks", "other prompt", "unfinished", "empty"}


def m(*pairs):
    return [{"role": r, "content": c} for r, c in pairs]


TALKS = [
    m(("user", "Tell me a joke")),
    m(("system", "Be brief."), ("user", "Hi")),
    m(("system", ""), ("user", "Hi")),
    m(("user", "Hi"), ("assistant", "Hello!"), ("user", "Bye\n\nnow  ")),
    m(("system", "S"), ("user", "a"), ("assistant", ""), ("user", "")),
    m(("user", "a"), ("system", "late")),
    m(("user", "it's \\n {{ x }} <|im_end|> \U0001f600")),
    m(("assistant", "first")),
]


def main():
    env = Environment(trim_blocks=True, lstrip_blocks=True)
    rows = []
    for name, text in TEMPLATES.items():
        row = {"name": name, "template": text}
        if name in REFUSED:
            row["refused"] = True
        else:
            t = env.from_string(text)
            row["talks"] = [{"messages": talk, "prompt": p,
                             "text": t.render(messages=talk, add_generation_prompt=p)}
                            for talk in TALKS for p in (False, True)]
        rows.append(row)
    with open(os.path.join(HERE, "chat.json"), "w") as f:
        json.dump(rows, f, indent=0)
        f.write("\n")


main()
